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
from runyard.snapshots import Depot, Entry, Manifest, freeze

Project = Callable[[dict[str, bytes]], Path]
Store = Callable[..., str]


def contents(root: Path) -> dict[bytes, object]:
    found: dict[bytes, object] = {}
    for folder, folders, files in os.walk(os.fsencode(root)):
        for name in files + folders:
            path = folder + b"/" + name
            about = os.lstat(path)
            below = os.path.relpath(path, os.fsencode(root))
            if stat.S_ISLNK(about.st_mode):
                found[below] = os.fsencode(Path(os.fsdecode(path)).readlink())
            elif stat.S_ISDIR(about.st_mode):
                found[below] = None
            else:
                with open(path, "rb") as file:
                    found[below] = (bool(about.st_mode & 0o100), file.read())
    return found


@pytest.fixture
def rich(project: Project) -> Path:
    """A folder with everything that a snapshot can hold."""
    root = project({"train.py": b"print(1)", "empty/deep/": b"", "pkg/a.py": b"", "big": os.urandom(2_500_000)})
    project({"run.sh": b"#!/bin/sh\n", "pkg/copy.py": b"print(1)"})
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("pkg")
    (root / "dangling").symlink_to("outputs/later")
    with open(os.fsencode(root) + b"/odd \xff\n", "wb") as file:
        file.write(b"odd")
    return root


def test_a_working_copy_is_what_was_frozen(rich: Path, store: Store, depot: Depot, tmp_path: Path) -> None:
    snapshot = store(rich)
    depot.materialize(snapshot, tmp_path / "run" / "work")
    assert contents(tmp_path / "run" / "work") == contents(rich)
    (tmp_path / "run" / "work" / "train.py").write_bytes(b"mine to change")
    assert depot.read(snapshot, "train.py") == b"print(1)"


def test_a_waiting_run_gets_the_code_it_was_submitted_with(
    project: Project, store: Store, depot: Depot, tmp_path: Path
) -> None:
    root = project({"train.py": b"old"})
    first = store(root)
    project({"train.py": b"new"})
    second = store(root)
    depot.materialize(first, tmp_path / "one")
    depot.materialize(second, tmp_path / "two")
    assert [(tmp_path / name / "train.py").read_bytes() for name in ("one", "two")] == [b"old", b"new"]


def test_another_depot_on_the_same_folder_knows_the_same(project: Project, store: Store, depot: Depot) -> None:
    other = Depot(depot.incoming.parent)
    assert other.missing(["00" * 32, "00" * 32]) == ["00" * 32]
    snapshot = store(project({"train.py": b"print(1)"}))
    assert other.has(snapshot)
    assert other.read(snapshot, "train.py") == b"print(1)"
    assert not other.has("0" * 64)


def test_adding_twice_changes_nothing(project: Project, store: Store, depot: Depot) -> None:
    root = project({"train.py": b"print(1)"})
    first = store(root)
    before = contents(depot.incoming.parent)
    assert store(root) == first
    assert contents(depot.incoming.parent) == before


def test_ten_threads_that_add_the_same_at_once_store_it_once(rich: Path, depot: Depot, tmp_path: Path) -> None:
    start = threading.Barrier(10)

    def submit(number: int) -> str:
        pack = depot.incoming / f"{number}.pack"
        frozen = freeze(rich, index_folder=tmp_path / str(number), pack_to=pack)
        start.wait()
        return depot.add(frozen.manifest.to_bytes(), pack)

    with ThreadPoolExecutor(10) as pool:
        (snapshot,) = set(pool.map(submit, range(10)))
    depot.materialize(snapshot, tmp_path / "work")
    assert contents(tmp_path / "work") == contents(rich)
    assert len(list((depot.incoming.parent / "packs").iterdir())) == 1
    assert list(depot.incoming.iterdir()) == []


def test_a_snapshot_with_missing_contents_is_refused(depot: Depot) -> None:
    manifest = Manifest([Entry("a", "file", size=3, digest="ab" * 32)])
    with pytest.raises(SnapshotException, match="1 of the contents") as caught:
        depot.add(manifest.to_bytes(), None)
    assert caught.value.facts["missing"] == ["ab" * 32]
    assert not depot.has(manifest.id)


def test_a_damaged_pack_is_refused_and_removed(project: Project, depot: Depot, tmp_path: Path) -> None:
    pack = depot.incoming / "new.pack"
    frozen = freeze(project({"a": b"one"}), index_folder=tmp_path / "index", pack_to=pack)
    pack.write_bytes(pack.read_bytes()[:-1])
    with pytest.raises(SnapshotException, match="damaged"):
        depot.add(frozen.manifest.to_bytes(), pack)
    assert not depot.has(frozen.id)
    assert list(depot.incoming.iterdir()) == []


def test_a_pack_from_another_disk_is_taken_too(project: Project, depot: Depot, tmp_path: Path) -> None:
    other_disk = Path("/dev/shm")
    if not other_disk.is_dir() or other_disk.stat().st_dev == tmp_path.stat().st_dev:
        other_disk = tmp_path  # one disk only: then it is a rename
    pack = other_disk / f"{os.urandom(8).hex()}.pack"
    frozen = freeze(project({"a": b"one"}), index_folder=tmp_path / "index", pack_to=pack)
    depot.add(frozen.manifest.to_bytes(), pack)
    assert depot.read(frozen.id, "a") == b"one"
    assert not pack.exists()


def test_content_that_rots_on_disk_is_never_handed_out_and_can_be_stored_again(
    project: Project, store: Store, depot: Depot, tmp_path: Path
) -> None:
    root = project({"a": b"precious", "b": b"other"})
    snapshot = store(root)
    (pack,) = (depot.incoming.parent / "packs").glob("*.pack")
    pack.chmod(0o600)
    pack.write_bytes(pack.read_bytes().replace(b"precious", b"pretious"))
    with pytest.raises(SnapshotException, match="damaged"):
        depot.materialize(snapshot, tmp_path / "work")
    assert list(tmp_path.glob("*work*")) == []
    later = Depot(depot.incoming.parent)
    assert not later.has(snapshot)
    assert store(root) == snapshot
    depot.materialize(snapshot, tmp_path / "work")
    assert contents(tmp_path / "work") == contents(root)
    assert Depot(depot.incoming.parent).has(snapshot)


def test_packs_and_manifests_that_a_power_cut_emptied_count_as_missing(
    project: Project, store: Store, depot: Depot
) -> None:
    root = project({"a": b"one"})
    snapshot = store(root)
    for folder in ("packs", "manifests"):
        for path in (depot.incoming.parent / folder).iterdir():
            path.write_bytes(b"")
        later = Depot(depot.incoming.parent)
        assert not later.has(snapshot)
        assert store(root, Depot(depot.incoming.parent)) == snapshot
        assert later.has(snapshot)
        assert later.read(snapshot, "a") == b"one"


def test_a_half_written_copy_of_a_crash_is_replaced(rich: Path, store: Store, depot: Depot, tmp_path: Path) -> None:
    script = """
        import os, sys
        from pathlib import Path
        from runyard.snapshots import Depot
        real = os.open
        def dying(path, *rest, **options):
            if os.fsencode(path).endswith(b"run.sh"):
                os._exit(9)
            return real(path, *rest, **options)
        os.open = dying
        Depot(Path(sys.argv[1])).materialize(sys.argv[2], Path(sys.argv[3]))
    """
    snapshot = store(rich)
    arguments = [str(depot.incoming.parent), snapshot, str(tmp_path / "work")]
    assert _python(script, *arguments).returncode == 9
    assert not (tmp_path / "work").exists()
    depot.materialize(snapshot, tmp_path / "work")
    assert contents(tmp_path / "work") == contents(rich)
    assert list(tmp_path.glob(".work*")) == []


def test_a_copy_goes_into_an_empty_folder_but_not_into_a_full_one(
    project: Project, store: Store, depot: Depot, tmp_path: Path
) -> None:
    snapshot = store(project({"a": b"one"}))
    (tmp_path / "work").mkdir()
    depot.materialize(snapshot, tmp_path / "work")
    with pytest.raises(SnapshotException, match="is not empty"):
        depot.materialize(snapshot, tmp_path / "work")


@pytest.mark.parametrize("entry", [Entry("../x", "file", digest="ab" * 32), Entry("x", "link", target="/etc")])
def test_a_manifest_that_leads_outside_never_gets_in(depot: Depot, entry: Entry) -> None:
    with pytest.raises(SnapshotException, match="outside"):
        depot.add(Manifest([entry]).to_bytes(), None)


@pytest.mark.parametrize("name", ["../manifests", "", "no such", "0" * 64, "é"])
def test_an_unknown_snapshot_is_said_clearly(depot: Depot, tmp_path: Path, name: str) -> None:
    assert not depot.has(name)
    with pytest.raises(SnapshotException, match="there is no snapshot"):
        depot.materialize(name, tmp_path / "work")


def test_reading_one_file_of_a_snapshot(rich: Path, store: Store, depot: Depot) -> None:
    snapshot = store(rich)
    assert depot.read(snapshot, "big") == (rich / "big").read_bytes()
    for path in ("nothing", "link", "empty"):
        with pytest.raises(SnapshotException, match="there is no file"):
            depot.read(snapshot, path)


def test_a_zip_holds_the_whole_snapshot(rich: Path, store: Store, depot: Depot, tmp_path: Path) -> None:
    snapshot = store(rich)
    path = depot.zip(snapshot, tmp_path / "restored" / f"{snapshot}.zip")
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
def test_a_full_disk_is_said_and_leaves_nothing_behind(
    rich: Path, store: Store, depot: Depot, tmp_path: Path, step: str
) -> None:
    # a limit on the size of files stands for the full disk: it needs no root, and is handled the same
    script = """
        import resource, signal, sys
        from pathlib import Path
        from runyard.errors import SnapshotException
        from runyard.snapshots import Depot, freeze
        step, source, depot, snapshot, folder = sys.argv[1:]
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        into = Path(folder, "out")
        try:
            if step == "freeze":
                freeze(Path(source), index_folder=Path(folder, "index"), pack_to=into)
            else:
                getattr(Depot(Path(depot)), step)(snapshot, into)
        except SnapshotException as error:
            print(error)
    """
    snapshot = store(rich)
    folder = tmp_path / "full"
    folder.mkdir()
    done = _python(script, step, str(rich), str(depot.incoming.parent), snapshot, str(folder))
    assert f"no space left to write {folder}/out" in done.stdout, done.stderr
    assert f"hint: free some space on the disk of {folder}" in done.stdout
    assert list(folder.iterdir()) == []


def test_what_killed_clients_left_in_incoming_goes_after_a_day(project: Project, store: Store, depot: Depot) -> None:
    store(project({"a": b"one"}))
    for name, age_s in (("old", 90_000), ("young", 60)):
        left = depot.incoming / name
        left.write_bytes(b"")
        os.utime(left, (left.stat().st_mtime - age_s,) * 2)
    Depot(depot.incoming.parent).missing(["00" * 32])
    assert [path.name for path in depot.incoming.iterdir()] == ["young"]


def _python(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *arguments],
        env={"PYTHONPATH": str(Path(runyard.__file__).parent.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
