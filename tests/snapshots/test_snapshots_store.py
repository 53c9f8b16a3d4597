from __future__ import annotations

import os
import stat
import subprocess
import sys
import textwrap
import threading
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import runyard
from runyard.errors import SnapshotException
from runyard.snapshots import Entry, Manifest, SnapshotStore, freeze

Project = Callable[[dict[str, bytes]], Path]
AddSnapshot = Callable[..., str]


def contents(root: Path) -> dict[bytes, object]:
    tree: dict[bytes, object] = {}
    for folder, folders, files in os.walk(os.fsencode(root)):
        for name in files + folders:
            path = folder + b"/" + name
            status = os.lstat(path)
            relative = os.path.relpath(path, os.fsencode(root))
            if stat.S_ISLNK(status.st_mode):
                tree[relative] = os.fsencode(Path(os.fsdecode(path)).readlink())
            elif stat.S_ISDIR(status.st_mode):
                tree[relative] = None
            else:
                with open(path, "rb") as file:
                    tree[relative] = (bool(status.st_mode & 0o100), file.read())
    return tree


@pytest.fixture
def rich(project: Project) -> Path:
    """A folder with all kinds of entries."""
    root = project({"train.py": b"print(1)", "empty/deep/": b"", "pkg/a.py": b"", "big": os.urandom(2_500_000)})
    project({"run.sh": b"#!/bin/sh\n", "pkg/copy.py": b"print(1)"})
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("pkg")
    (root / "dangling").symlink_to("outputs/later")
    with open(os.fsencode(root) + b"/odd \xff\n", "wb") as file:
        file.write(b"odd")
    return root


def test_working_copy_equals_the_frozen_folder(
    rich: Path, add_snapshot: AddSnapshot, store: SnapshotStore, tmp_path: Path
) -> None:
    snapshot = add_snapshot(rich)
    store.materialize(snapshot, tmp_path / "run" / "work")
    assert contents(tmp_path / "run" / "work") == contents(rich)
    (tmp_path / "run" / "work" / "train.py").write_bytes(b"mine to change")
    assert store.read(snapshot, "train.py") == b"print(1)"


def test_later_edits_do_not_change_a_snapshot(
    project: Project, add_snapshot: AddSnapshot, store: SnapshotStore, tmp_path: Path
) -> None:
    root = project({"train.py": b"old"})
    first = add_snapshot(root)
    project({"train.py": b"new"})
    second = add_snapshot(root)
    store.materialize(first, tmp_path / "one")
    store.materialize(second, tmp_path / "two")
    assert [(tmp_path / name / "train.py").read_bytes() for name in ("one", "two")] == [b"old", b"new"]


def test_two_stores_on_the_same_folder_are_equivalent(
    project: Project, add_snapshot: AddSnapshot, store: SnapshotStore
) -> None:
    other = SnapshotStore(store.incoming.parent)
    assert other.missing(["00" * 32, "00" * 32]) == ["00" * 32]
    snapshot = add_snapshot(project({"train.py": b"print(1)"}))
    assert other.has(snapshot)
    assert other.read(snapshot, "train.py") == b"print(1)"
    assert not other.has("0" * 64)


def test_adding_twice_changes_nothing(project: Project, add_snapshot: AddSnapshot, store: SnapshotStore) -> None:
    root = project({"train.py": b"print(1)"})
    first = add_snapshot(root)
    before = contents(store.incoming.parent)
    assert add_snapshot(root) == first
    assert contents(store.incoming.parent) == before


def test_concurrent_adds_of_one_snapshot_store_it_once(rich: Path, store: SnapshotStore, tmp_path: Path) -> None:
    start = threading.Barrier(10)

    def submit(number: int) -> str:
        pack = store.incoming / f"{number}.pack"
        snapshot = freeze(rich, index_folder=tmp_path / str(number), pack_to=pack)
        start.wait()
        return store.add(snapshot.manifest.to_bytes(), pack)

    with ThreadPoolExecutor(10) as pool:
        (snapshot,) = set(pool.map(submit, range(10)))
    store.materialize(snapshot, tmp_path / "work")
    assert contents(tmp_path / "work") == contents(rich)
    assert len(list((store.incoming.parent / "packs").iterdir())) == 1
    assert list(store.incoming.iterdir()) == []


def test_a_snapshot_with_missing_contents_is_refused(store: SnapshotStore) -> None:
    manifest = Manifest([Entry("a", "file", size=3, digest="ab" * 32)])
    with pytest.raises(SnapshotException, match="1 contents of snapshot") as caught:
        store.add(manifest.to_bytes(), None)
    assert caught.value.facts["missing"] == ["ab" * 32]
    assert not store.has(manifest.id)


def test_a_damaged_pack_is_refused_and_removed(project: Project, store: SnapshotStore, tmp_path: Path) -> None:
    pack = store.incoming / "new.pack"
    snapshot = freeze(project({"a": b"one"}), index_folder=tmp_path / "index", pack_to=pack)
    pack.write_bytes(pack.read_bytes()[:-1])
    with pytest.raises(SnapshotException, match="damaged"):
        store.add(snapshot.manifest.to_bytes(), pack)
    assert not store.has(snapshot.id)
    assert list(store.incoming.iterdir()) == []


def test_a_pack_on_another_disk_is_accepted(project: Project, store: SnapshotStore, tmp_path: Path) -> None:
    other_disk = Path("/dev/shm")
    if not other_disk.is_dir() or other_disk.stat().st_dev == tmp_path.stat().st_dev:
        other_disk = tmp_path  # only one disk available: tests the rename
    pack = other_disk / f"{os.urandom(8).hex()}.pack"
    snapshot = freeze(project({"a": b"one"}), index_folder=tmp_path / "index", pack_to=pack)
    store.add(snapshot.manifest.to_bytes(), pack)
    assert store.read(snapshot.id, "a") == b"one"
    assert not pack.exists()


def test_damaged_content_is_detected_and_can_be_stored_again(
    project: Project, add_snapshot: AddSnapshot, store: SnapshotStore, tmp_path: Path
) -> None:
    root = project({"a": b"precious", "b": b"other"})
    snapshot = add_snapshot(root)
    (pack,) = (store.incoming.parent / "packs").glob("*.pack")
    pack.chmod(0o600)
    pack.write_bytes(pack.read_bytes().replace(b"precious", b"pretious"))
    with pytest.raises(SnapshotException, match="damaged"):
        store.materialize(snapshot, tmp_path / "work")
    assert list(tmp_path.glob("*work*")) == []
    later = SnapshotStore(store.incoming.parent)
    assert not later.has(snapshot)
    assert add_snapshot(root) == snapshot
    store.materialize(snapshot, tmp_path / "work")
    assert contents(tmp_path / "work") == contents(root)
    assert SnapshotStore(store.incoming.parent).has(snapshot)


def test_empty_packs_and_manifests_count_as_missing(
    project: Project, add_snapshot: AddSnapshot, store: SnapshotStore
) -> None:
    root = project({"a": b"one"})
    snapshot = add_snapshot(root)
    for folder in ("packs", "manifests"):
        for path in (store.incoming.parent / folder).iterdir():
            path.write_bytes(b"")
        later = SnapshotStore(store.incoming.parent)
        assert not later.has(snapshot)
        assert add_snapshot(root, SnapshotStore(store.incoming.parent)) == snapshot
        assert later.has(snapshot)
        assert later.read(snapshot, "a") == b"one"


def test_a_partial_copy_left_by_a_crash_is_replaced(
    rich: Path, add_snapshot: AddSnapshot, store: SnapshotStore, tmp_path: Path
) -> None:
    script = """
        import os, sys
        from pathlib import Path
        from runyard.snapshots import SnapshotStore
        real = os.open
        def exit_in_the_middle(path, *rest, **options):
            if os.fsencode(path).endswith(b"run.sh"):
                os._exit(9)
            return real(path, *rest, **options)
        os.open = exit_in_the_middle
        SnapshotStore(Path(sys.argv[1])).materialize(sys.argv[2], Path(sys.argv[3]))
    """
    snapshot = add_snapshot(rich)
    arguments = [str(store.incoming.parent), snapshot, str(tmp_path / "work")]
    assert _python(script, *arguments).returncode == 9
    assert not (tmp_path / "work").exists()
    store.materialize(snapshot, tmp_path / "work")
    assert contents(tmp_path / "work") == contents(rich)
    assert list(tmp_path.glob(".work*")) == []


def test_materialize_accepts_only_an_empty_folder(
    project: Project, add_snapshot: AddSnapshot, store: SnapshotStore, tmp_path: Path
) -> None:
    snapshot = add_snapshot(project({"a": b"one"}))
    (tmp_path / "work").mkdir()
    store.materialize(snapshot, tmp_path / "work")
    with pytest.raises(SnapshotException, match="is not empty"):
        store.materialize(snapshot, tmp_path / "work")


@pytest.mark.parametrize("entry", [Entry("../x", "file", digest="ab" * 32), Entry("x", "link", target="/etc")])
def test_a_manifest_with_paths_outside_is_refused(store: SnapshotStore, entry: Entry) -> None:
    with pytest.raises(SnapshotException, match="outside"):
        store.add(Manifest([entry]).to_bytes(), None)


@pytest.mark.parametrize("name", ["../manifests", "", "no such", "0" * 64, "é"])
def test_an_unknown_snapshot_raises(store: SnapshotStore, tmp_path: Path, name: str) -> None:
    assert not store.has(name)
    with pytest.raises(SnapshotException, match="there is no snapshot"):
        store.materialize(name, tmp_path / "work")


def test_reading_one_file_of_a_snapshot(rich: Path, add_snapshot: AddSnapshot, store: SnapshotStore) -> None:
    snapshot = add_snapshot(rich)
    assert store.read(snapshot, "big") == (rich / "big").read_bytes()
    for path in ("nothing", "link", "empty"):
        with pytest.raises(SnapshotException, match="there is no file"):
            store.read(snapshot, path)


def test_a_zip_contains_all_entries(
    rich: Path, add_snapshot: AddSnapshot, store: SnapshotStore, tmp_path: Path
) -> None:
    snapshot = add_snapshot(rich)
    path = store.zip(snapshot, tmp_path / "restored" / f"{snapshot}.zip")
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert set(archive.namelist()) == {
            "train.py", "empty/deep/", "pkg/a.py", "big", "run.sh", "pkg/copy.py", "link", "dangling", "odd %FF\n"
        }  # fmt: skip
        assert archive.read("big") == (rich / "big").read_bytes()
        assert archive.read("link") == b"pkg"
        assert stat.S_ISLNK(archive.getinfo("link").external_attr >> 16)
        assert archive.getinfo("run.sh").external_attr >> 16 & 0o100
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("step", ["freeze", "materialize", "zip"])
def test_a_full_disk_is_reported_and_leaves_no_files(
    rich: Path, add_snapshot: AddSnapshot, store: SnapshotStore, tmp_path: Path, step: str
) -> None:
    # a limit on file sizes simulates the full disk without root permissions
    script = """
        import resource, signal, sys
        from pathlib import Path
        from runyard.errors import SnapshotException
        from runyard.snapshots import SnapshotStore, freeze
        step, source, store, snapshot, folder = sys.argv[1:]
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        into = Path(folder, "out")
        try:
            if step == "freeze":
                freeze(Path(source), index_folder=Path(folder, "index"), pack_to=into)
            else:
                getattr(SnapshotStore(Path(store)), step)(snapshot, into)
        except SnapshotException as error:
            print(error)
    """
    snapshot = add_snapshot(rich)
    folder = tmp_path / "full"
    folder.mkdir()
    process = _python(script, step, str(rich), str(store.incoming.parent), snapshot, str(folder))
    assert f"no space left to write {folder}/out" in process.stdout, process.stderr
    assert f"hint: free some space on the disk of {folder}" in process.stdout
    assert list(folder.iterdir()) == []


def test_abandoned_uploads_are_removed_after_a_day(
    project: Project, add_snapshot: AddSnapshot, store: SnapshotStore
) -> None:
    add_snapshot(project({"a": b"one"}))
    for name, age_s in (("old", 90_000), ("young", 60)):
        leftover = store.incoming / name
        leftover.write_bytes(b"")
        os.utime(leftover, (leftover.stat().st_mtime - age_s,) * 2)
    SnapshotStore(store.incoming.parent).missing(["00" * 32])
    assert [path.name for path in store.incoming.iterdir()] == ["young"]


def _python(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *arguments],
        env={"PYTHONPATH": str(Path(runyard.__file__).parent.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
