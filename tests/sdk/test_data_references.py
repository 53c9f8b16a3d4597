"""References to data: their names, their text, their modes; no yard is needed to make them."""

from __future__ import annotations

import re

import pytest

from runyard import DataReference, RunConfiguration
from runyard.errors import UserErrorException
from runyard.sdk.data.datastore import datastore_from_view
from runyard.sdk.data.reference import DataPath, DataPathComputeBinding
from runyard.sdk.training import arguments
from runyard.sdk.training.data_inputs import collect_inputs
from runyard.sdk.training.run_configuration import DataReferenceConfiguration
from runyard.spec.data import DatasetUse, DataUse


@pytest.fixture
def store():
    return datastore_from_view(None, {"name": "blobs", "kind": "azure_blob", "configuration": {"account_name": "lab"}})


def test_a_path_has_a_new_name_and_the_root_has_the_datastores(store) -> None:
    assert re.fullmatch("[0-9a-f]{32}", store.path("p").data_reference_name)
    assert store.path("p").data_reference_name != store.path("p").data_reference_name
    for root in (store.path(), store.path("."), store.as_mount(), store.as_download(), store.as_upload()):
        assert (root.data_reference_name, root.path_on_datastore) == ("blobs", None)
    assert store.path("./a/b/").path_on_datastore == "a/b"
    assert store.path("a").path("b").path_on_datastore == "a/b"
    assert store.path("a", "mine").data_reference_name == "mine"


def test_other_modes_are_copies_under_the_same_name(store) -> None:
    mounted = store.path("p")
    copied, sent = mounted.as_download("there"), mounted.as_upload("outputs", overwrite=True)
    assert (mounted.mode, copied.mode, sent.mode) == ("mount", "download", "upload")
    assert {reference.data_reference_name for reference in (copied, sent)} == {mounted.data_reference_name}
    assert (copied.path_on_compute, sent.path_on_compute, sent.overwrite) == ("there", "outputs", True)
    assert mounted.as_download(overwrite=True).overwrite is False
    for wrong in ("copy", "", None, 3):
        with pytest.raises(UserErrorException, match="mode must be"):
            DataReference(store, mode=wrong)
        with pytest.raises(UserErrorException, match="mode must be"):
            DataReferenceConfiguration(store.name, mode=wrong)


def test_its_text_is_the_variable_with_the_path(store) -> None:
    reference = store.path("a", "mine")
    assert str(reference) == repr(reference) == "$AZUREML_DATAREFERENCE_mine"
    assert str(store) == "$AZUREML_DATAREFERENCE_blobs"
    items = arguments.from_script_params({"--data": reference, "--all": store, "--size": [1, 2]})
    assert arguments.to_text(items) == (
        *("--data", "$AZUREML_DATAREFERENCE_mine", "--all", "$AZUREML_DATAREFERENCE_blobs", "--size", "1", "2"),
    )


@pytest.mark.parametrize("path", ["..", "a/../../b", "../a"])
def test_a_path_outside_of_the_datastore_is_refused(store, path: str) -> None:
    with pytest.raises(UserErrorException, match="leads out of the datastore"):
        store.path(path)


def test_an_invalid_variable_name_is_refused(store) -> None:
    with pytest.raises(UserErrorException, match="cannot be the name"):
        store.path("a", "my data")


def test_the_last_input_of_a_name_is_used(store) -> None:
    config = RunConfiguration()
    config.data_references = {"blobs": DataReferenceConfiguration("blobs", mode="download", path_on_datastore="x")}
    (only,) = collect_inputs(config, ["a text", 3])
    assert only._data_use(None) == DataUse("blobs", "blobs", "x", "download")
    (only,) = collect_inputs(config, [store.as_mount()])
    assert only._data_use(None) == DataUse("blobs", "blobs", "", "mount")
    config.data_references = {"blobs": "blobs"}
    with pytest.raises(UserErrorException, match="a DataReferenceConfiguration"):
        collect_inputs(config, [])


def test_a_data_path_becomes_a_reference_by_its_binding(store) -> None:
    binding = DataPathComputeBinding("download", "there")
    reference = DataPath(store, "a").create_data_reference("mine", binding)
    assert (reference.path_on_datastore, reference.mode, reference.path_on_compute) == ("a", "download", "there")


def test_errors_use_the_users_names_for_data() -> None:
    assert DataUse("mnist", "blobs", "a/b").label == "mnist"
    assert DataUse("0" * 32, "blobs", "a/b").label == "blobs/a/b"
    dataset = DataUse("mnist", dataset=DatasetUse("an-id"))
    assert (dataset.placeholder, dataset.variables) == (
        "DatasetConsumptionConfig:mnist",
        ("AZUREML_DATAREFERENCE_mnist", "mnist"),
    )
