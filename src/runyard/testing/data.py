"""What every datastore must do, proven with real files.

class TestMine(DataStoreContract):
    @pytest.fixture
    def store(self): ...          # an empty one
"""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path

import pytest

from runyard.data.base import DataStore, FileChanged, StoredFile, TransferCanceled
from runyard.data.copy import NamedStore, Progress, Upload, download, upload
from runyard.data.registry import Datastores
from runyard.spec.folder import HomeFolder
from runyard.store.open_store import open_database

ODD_NAMES = (
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
BIG = 20_000_000  # more than what travels in one request


def never() -> threading.Event:
    return threading.Event()


def moved(count: int) -> None:
    pass


class DataStoreContract:
    @pytest.fixture
    def store(self) -> DataStore:
        raise NotImplementedError

    @pytest.fixture
    def place(self, store: DataStore, tmp_path: Path) -> NamedStore:
        home = tmp_path / "home"
        home.mkdir()
        return NamedStore("mine", store, Datastores(open_database(HomeFolder(home).database), home).digests)

    def test_what_is_put_is_got_byte_for_byte(self, store: DataStore, tmp_path: Path) -> None:
        for size in (0, 1, 4096, 1_000_003, BIG):
            content = os.urandom(size)
            stored, digest = store.put("some/file.bin", _file(tmp_path / "file", content), moved, never())
            assert (stored.path, stored.size, digest) == ("some/file.bin", size, hashlib.sha256(content).hexdigest())
            found = store.head("some/file.bin")
            assert found is not None
            assert found.size == size
            assert store.get(found, tmp_path / "half", moved, never()) == digest
            assert (tmp_path / "half").read_bytes() == content
            (tmp_path / "half").unlink()

    def test_names_may_have_any_letters(self, store: DataStore, tmp_path: Path) -> None:
        for name in ODD_NAMES:
            store.put(name, _file(tmp_path / "file", name.encode()), moved, never())
        assert sorted(stored.path for stored in store.list()) == sorted(ODD_NAMES)
        for name in ODD_NAMES:
            stored = store.head(name)
            assert stored is not None, name
            store.get(stored, tmp_path / "half", moved, never())
            assert (tmp_path / "half").read_bytes() == name.encode()

    def test_a_folder_is_listed_to_its_depth_and_a_file_is_itself(self, store: DataStore, tmp_path: Path) -> None:
        for name in ("a/one", "a/b/two", "ab/three", "four"):
            store.put(name, _file(tmp_path / "file", b"x"), moved, never())
        assert _paths(store, "") == ["a/b/two", "a/one", "ab/three", "four"]
        assert _paths(store, "a") == ["a/b/two", "a/one"]  # and not what only begins alike
        assert _paths(store, "four") == ["four"]
        assert _paths(store, "nothing") == []
        assert store.head("a") is None
        assert store.head("nothing/at/all") is None

    def test_a_deleted_file_is_gone_and_deleting_it_again_harms_nobody(self, store: DataStore, tmp_path: Path) -> None:
        store.put("a/file", _file(tmp_path / "file", b"x"), moved, never())
        store.put("a/other", _file(tmp_path / "file", b"x"), moved, never())
        for _ in range(2):
            store.delete("a/file")
            assert _paths(store, "") == ["a/other"]

    def test_a_file_that_was_replaced_is_not_given_for_the_one_that_was_listed(
        self, store: DataStore, tmp_path: Path
    ) -> None:
        for size in (1000, BIG):
            store.put("file", _file(tmp_path / "old", b"a" * size), moved, never())
            old = store.head("file")
            assert old is not None
            store.put("file", _file(tmp_path / "new", b"b" * size), moved, never())
            with pytest.raises(FileChanged):
                store.get(old, tmp_path / "half", moved, never())

    def test_a_file_that_is_written_to_meanwhile_does_not_arrive(self, store: DataStore, tmp_path: Path) -> None:
        source = _file(tmp_path / "file", b"a" * BIG)

        def disturb(count: int) -> None:
            if count > 0:
                with open(source, "r+b") as file:
                    file.write(b"CHANGED")
                os.utime(source)

        store.put("file", _file(tmp_path / "before", b"before"), moved, never())
        with pytest.raises(FileChanged):
            store.put("file", source, disturb, never())
        found = store.head("file")
        assert found is not None
        assert found.size == len(b"before")

    def test_what_is_not_wanted_any_more_is_not_finished(self, store: DataStore, tmp_path: Path) -> None:
        unwanted = threading.Event()
        source = _file(tmp_path / "file", os.urandom(BIG))
        with pytest.raises(TransferCanceled):
            store.put("file", source, lambda count: unwanted.set(), unwanted)
        assert store.head("file") is None

    def test_many_files_travel_there_and_back(self, place: NamedStore, tmp_path: Path) -> None:
        contents = {f"set/{n % 7}/{n}.bin": os.urandom(n * 10) for n in range(200)}
        files = [
            Upload(_file(tmp_path / "up" / path, content), path, len(content)) for path, content in contents.items()
        ]
        assert upload(place, files, overwrite=False, progress=Progress(), canceled=never()) == []
        back = [(stored, tmp_path / "down" / stored.path) for stored in place.store.list("set")]
        download(place, back, overwrite=False, progress=Progress(), canceled=never())
        found = {p.relative_to(tmp_path / "down").as_posix(): p.read_bytes() for p in _files(tmp_path / "down")}
        assert found == contents

    def test_what_is_there_is_skipped_and_what_differs_is_replaced_only_when_asked(
        self, place: NamedStore, tmp_path: Path
    ) -> None:
        def go(contents: dict[str, bytes], overwrite: bool) -> tuple[Progress, list[str]]:
            files = [Upload(_file(tmp_path / name, content), name, len(content)) for name, content in contents.items()]
            progress = Progress()
            return progress, upload(place, files, overwrite=overwrite, progress=progress, canceled=never())

        go({"same": b"same", "other": b"first"}, False)
        progress, warnings = go({"same": b"same", "other": b"longer than first"}, False)
        assert progress.files_skipped == 2
        assert len(warnings) == 1  # one that differs was left as it is
        progress, warnings = go({"same": b"same", "other": b"longer than first"}, True)
        assert (progress.files_skipped, warnings) == (1, [])
        found = place.store.head("other")
        assert found is not None
        assert found.size == len(b"longer than first")

    def test_a_file_whose_content_is_not_what_was_put_is_not_handed_on(self, place: NamedStore, tmp_path: Path) -> None:
        place.store.put("file", _file(tmp_path / "file", b"right"), moved, never())
        listed = place.store.head("file")
        assert listed is not None
        place.digests.add(place.name, [("file", listed.etag, hashlib.sha256(b"wrong").hexdigest())])
        with pytest.raises(Exception, match="damaged"):
            download(place, [(listed, tmp_path / "target")], overwrite=True, progress=Progress(), canceled=never())
        assert not (tmp_path / "target").exists()
        assert not list(tmp_path.glob(".*half"))


def _paths(store: DataStore, prefix: str) -> list[str]:
    found: list[StoredFile] = list(store.list(prefix))
    return sorted(stored.path for stored in found)


def _file(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
