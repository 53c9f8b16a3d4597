"""Every kind of datastore fulfills the contract, with real files and servers."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from runyard.data.backends import open_store, split_credentials
from runyard.data.base import DataStore
from runyard.data.copy import NamedStore, Progress, Upload, upload
from runyard.data.folder_store import FolderStore
from runyard.testing.data import DataStoreContract


class TestFolder(DataStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> DataStore:
        (tmp_path / "store").mkdir()
        return FolderStore(tmp_path / "store")

    def test_concurrent_puts_do_not_record_a_wrong_digest(
        self, named_store: NamedStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def replace(draft: Path, target: Path) -> Path:
            if draft.name != "other":
                os.replace(draft, target)  # noqa: PTH105 - the method is patched
                draft = tmp_path / "other"
            os.replace(draft, target)  # noqa: PTH105
            return target

        (tmp_path / "other").write_bytes(b"theirs")
        (tmp_path / "source").write_bytes(b"ours")
        with monkeypatch.context() as patched:
            patched.setattr(Path, "replace", replace)
            files = [Upload(tmp_path / "source", "file", 4)]
            upload(named_store, files, overwrite=True, progress=Progress(), canceled=threading.Event())
        assert (tmp_path / "store" / "file").read_bytes() == b"theirs"
        assert named_store.digests.in_folder(named_store.name, "") == {}

    def test_deleted_files_and_dangling_links_are_skipped(self, store: DataStore, tmp_path: Path) -> None:
        (tmp_path / "store" / "loop").symlink_to("loop")
        (tmp_path / "store" / "nothing").symlink_to("nowhere")
        for name in ("a", "b", "c"):
            (tmp_path / "store" / name).write_text(name)
        assert sorted(stored.path for stored in store.list()) == ["a", "b", "c"]
        listing = store.list()
        first = next(listing).path
        for name in {"a", "b", "c"} - {first}:  # already listed
            (tmp_path / "store" / name).unlink()
        assert list(listing) == []


@pytest.mark.real
@pytest.mark.xdist_group("data")
class TestS3(DataStoreContract):
    @pytest.fixture
    def store(self, s3, new_name) -> DataStore:
        return open_store("mine", "s3", *split_credentials("s3", s3.bucket(new_name())))


@pytest.mark.real
@pytest.mark.xdist_group("data")
class TestS3BelowAPrefix(DataStoreContract):
    @pytest.fixture
    def store(self, s3, new_name) -> DataStore:
        return open_store("mine", "s3", *split_credentials("s3", {**s3.bucket(new_name()), "prefix": "teams/ours"}))


@pytest.mark.real
@pytest.mark.xdist_group("data")
class TestAzure(DataStoreContract):
    @pytest.fixture
    def store(self, azure, new_name) -> DataStore:
        return open_store("mine", "azure_blob", *split_credentials("azure_blob", azure.container(new_name())))
