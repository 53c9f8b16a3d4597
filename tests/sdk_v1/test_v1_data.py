"""Datastores and references by the names of the SDK v1: what they are called, and what stands on a command line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from runyard import Workspace
from runyard.errors import UserErrorException


def test_the_default_datastore_has_the_attributes_of_notebooks(workspace: Workspace) -> None:
    """B1.4: its name, type, account and container can be printed."""
    store = workspace.get_default_datastore()
    assert (store.name, store.datastore_type) == ("workspaceblobstore", "Folder")
    print(store.account_name + store.container_name)
    assert workspace.datastores["workspaceblobstore"].name == store.name


def test_a_reference_has_a_new_name_and_the_root_has_the_datastores(workspace: Workspace) -> None:
    """B3.15, B3.16: as text it is the variable in which the script finds the path."""
    store = workspace.get_default_datastore()
    part = store.path("mnist")
    assert re.fullmatch(r"\$AZUREML_DATAREFERENCE_[0-9a-f]{32}", str(part))
    assert store.path("mnist").data_reference_name != part.data_reference_name
    for root in (store.path(), store.path("."), store.as_mount(), store.as_download()):
        assert str(root) == f"$AZUREML_DATAREFERENCE_{store.name}"
    assert part.path("train").path_on_datastore == "mnist/train"
    assert (part.mode, store.path().mode) == ("mount", "mount")
    for mode in ("mount", "download", "upload"):
        bound = getattr(part, f"as_{mode}")()
        assert (bound.mode, bound.data_reference_name) == (mode, part.data_reference_name)
        assert bound is not part


def test_data_references_have_three_modes(workspace: Workspace) -> None:
    """B3.20: any other is a UserErrorException, and overwrite= of a download changes nothing."""
    from azureml.core.runconfig import DataReferenceConfiguration
    from azureml.data.data_reference import DataReference

    store = workspace.get_default_datastore()
    with pytest.raises(UserErrorException, match="mode must be 'mount', 'download' or 'upload'"):
        DataReference(store, "x", mode="stream")
    with pytest.raises(UserErrorException, match="mode must be 'mount', 'download' or 'upload'"):
        DataReferenceConfiguration(datastore_name=store.name, mode="hdfs")
    assert store.path("a").as_download(overwrite=True).overwrite is False


def test_existing_files_are_uploaded_again_only_with_overwrite(workspace: Workspace, tmp_path: Path) -> None:
    """B3.14: existing files are not replaced without overwrite."""
    store = workspace.get_default_datastore()
    (tmp_path / "a.txt").write_text("first")
    store.upload(src_dir=str(tmp_path), target_path="./once", overwrite=False, show_progress=False)
    (tmp_path / "a.txt").write_text("second")
    reference = store.upload(src_dir=str(tmp_path), target_path="./once", show_progress=False)
    store.download(str(tmp_path / "one"), prefix="once", show_progress=False)
    assert (tmp_path / "one" / "once" / "a.txt").read_text() == "first"
    store.upload(src_dir=str(tmp_path), target_path="once", overwrite=True, show_progress=False)
    store.download(str(tmp_path / "two"), prefix="once/a.txt", show_progress=False)
    assert (tmp_path / "two" / "once" / "a.txt").read_text() == "second"
    assert reference.path_on_datastore == "once"
    with pytest.raises(UserErrorException):
        store.upload(src_dir=str(tmp_path / "nowhere"))
