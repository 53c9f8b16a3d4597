"""The contract tests of datastores, with real files.

class TestMine(DataStoreContract):
    @pytest.fixture
    def store(self): ...          # an empty datastore
"""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path

import pytest

from runyard.data.base import DataStore, FileChanged, TransferCanceled
from runyard.data.copy import NamedStore, Progress, Upload, download, upload
from runyard.data.registry import Datastores
from runyard.spec.folder import HomeFolder
from runyard.store.open_store import open_database

SPECIAL_NAMES = (
    "plain.txt",
    "a/b/c.txt",
    "with space/and more .txt",
    "ünïcode/日本.txt",
    "per%cent %41.txt",
    "hash#tag.txt",
    "quest?ion&amp=1.txt",
    "plus+plus.txt",
    "quote'and\"both.txt",
    "semi;colon,comma.txt",
    "a.b/.hidden",
    "[brackets]{braces}~tilde$dollar@at!.txt",
)
BIG = 20_000_000  # larger than one request


def not_canceled() -> threading.Event:
    return threading.Event()


def ignore(count: int) -> None:
    pass


class DataStoreContract:
    @pytest.fixture
    def store(self) -> DataStore:
        raise NotImplementedError

    @pytest.fixture
    def named_store(self, store: DataStore, tmp_path: Path) -> NamedStore:
        home = tmp_path / "home"
        home.mkdir()
        return NamedStore("mine", store, Datastores(open_database(HomeFolder(home).database), home).digests)

    def test_files_are_stored_byte_for_byte(self, store: DataStore, tmp_path: Path) -> None:
        for size in (0, 1, 4096, 1_000_003, BIG):
            content = os.urandom(size)
            stored, digest = store.put("some/file.bin", _file(tmp_path / "file", content), ignore, not_canceled())
            assert (stored.path, stored.size, digest) == ("some/file.bin", size, hashlib.sha256(content).hexdigest())
            listed = store.head("some/file.bin")
            assert listed is not None
            assert listed.size == size
            assert store.get(listed, tmp_path / "draft", ignore, not_canceled()) == digest
            assert (tmp_path / "draft").read_bytes() == content
            (tmp_path / "draft").unlink()

    def test_names_may_contain_any_character(self, store: DataStore, tmp_path: Path) -> None:
        for name in SPECIAL_NAMES:
            store.put(name, _file(tmp_path / "file", name.encode()), ignore, not_canceled())
        assert sorted(stored.path for stored in store.list()) == sorted(SPECIAL_NAMES)
        for name in SPECIAL_NAMES:
            stored = store.head(name)
            assert stored is not None, name
            store.get(stored, tmp_path / "draft", ignore, not_canceled())
            assert (tmp_path / "draft").read_bytes() == name.encode()

    def test_a_folder_is_listed_recursively_and_a_file_as_itself(self, store: DataStore, tmp_path: Path) -> None:
        for name in ("a/one", "a/b/two", "ab/three", "four"):
            store.put(name, _file(tmp_path / "file", b"x"), ignore, not_canceled())
        assert _paths(store, "") == ["a/b/two", "a/one", "ab/three", "four"]
        assert _paths(store, "a") == ["a/b/two", "a/one"]  # not names that only begin with it
        assert _paths(store, "four") == ["four"]
        assert _paths(store, "nothing") == []
        assert store.head("a") is None
        assert store.head("nothing/at/all") is None

    def test_a_file_can_be_deleted_twice(self, store: DataStore, tmp_path: Path) -> None:
        store.put("a/file", _file(tmp_path / "file", b"x"), ignore, not_canceled())
        store.put("a/other", _file(tmp_path / "file", b"x"), ignore, not_canceled())
        for _ in range(2):
            store.delete("a/file")
            assert _paths(store, "") == ["a/other"]

    def test_a_file_that_was_replaced_after_the_listing_is_an_error(self, store: DataStore, tmp_path: Path) -> None:
        for size in (1000, BIG):
            store.put("file", _file(tmp_path / "old", b"a" * size), ignore, not_canceled())
            old = store.head("file")
            assert old is not None
            store.put("file", _file(tmp_path / "new", b"b" * size), ignore, not_canceled())
            with pytest.raises(FileChanged):
                store.get(old, tmp_path / "draft", ignore, not_canceled())

    def test_a_file_that_changes_during_the_upload_is_not_stored(self, store: DataStore, tmp_path: Path) -> None:
        source = _file(tmp_path / "file", b"a" * BIG)

        def modify(count: int) -> None:
            if count > 0:
                with open(source, "r+b") as file:
                    file.write(b"CHANGED")
                os.utime(source)

        store.put("file", _file(tmp_path / "before", b"before"), ignore, not_canceled())
        with pytest.raises(FileChanged):
            store.put("file", source, modify, not_canceled())
        listed = store.head("file")
        assert listed is not None
        assert listed.size == len(b"before")

    def test_a_canceled_upload_stores_nothing(self, store: DataStore, tmp_path: Path) -> None:
        canceled = threading.Event()
        source = _file(tmp_path / "file", os.urandom(BIG))
        with pytest.raises(TransferCanceled):
            store.put("file", source, lambda count: canceled.set(), canceled)
        assert store.head("file") is None

    def test_many_files_are_uploaded_and_downloaded(self, named_store: NamedStore, tmp_path: Path) -> None:
        contents = {f"set/{n % 7}/{n}.bin": os.urandom(n * 10) for n in range(200)}
        files = [
            Upload(_file(tmp_path / "up" / path, content), path, len(content)) for path, content in contents.items()
        ]
        assert upload(named_store, files, overwrite=False, progress=Progress(), canceled=not_canceled()) == []
        back = [(stored, tmp_path / "down" / stored.path) for stored in named_store.store.list("set")]
        download(named_store, back, overwrite=False, progress=Progress(), canceled=not_canceled())
        downloaded = {p.relative_to(tmp_path / "down").as_posix(): p.read_bytes() for p in _files(tmp_path / "down")}
        assert downloaded == contents

    def test_existing_files_are_skipped_or_replaced_on_request(self, named_store: NamedStore, tmp_path: Path) -> None:
        def upload_all(contents: dict[str, bytes], overwrite: bool) -> tuple[Progress, list[str]]:
            files = [Upload(_file(tmp_path / name, content), name, len(content)) for name, content in contents.items()]
            progress = Progress()
            return progress, upload(named_store, files, overwrite=overwrite, progress=progress, canceled=not_canceled())

        upload_all({"same": b"same", "other": b"first"}, False)
        progress, warnings = upload_all({"same": b"same", "other": b"longer than first"}, False)
        assert progress.files_skipped == 2
        assert len(warnings) == 1  # about the file that differs and was not replaced
        progress, warnings = upload_all({"same": b"same", "other": b"longer than first"}, True)
        assert (progress.files_skipped, warnings) == (1, [])
        listed = named_store.store.head("other")
        assert listed is not None
        assert listed.size == len(b"longer than first")

    def test_a_damaged_file_is_not_downloaded(self, named_store: NamedStore, tmp_path: Path) -> None:
        named_store.store.put("file", _file(tmp_path / "file", b"right"), ignore, not_canceled())
        listed = named_store.store.head("file")
        assert listed is not None
        named_store.digests.add(named_store.name, [("file", listed.etag, hashlib.sha256(b"wrong").hexdigest())])
        with pytest.raises(Exception, match="damaged"):
            download(
                named_store,
                [(listed, tmp_path / "target")],
                overwrite=True,
                progress=Progress(),
                canceled=not_canceled(),
            )
        assert not (tmp_path / "target").exists()
        assert not list(tmp_path.glob(".*half"))


def _paths(store: DataStore, prefix: str) -> list[str]:
    return sorted(stored.path for stored in store.list(prefix))


def _file(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
