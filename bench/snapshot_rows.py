"""Snapshots of a large folder: the first one, and another one after a single file has changed."""

from __future__ import annotations

import gc
import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter, sleep, time

from bench.row import Goal, Row, Size
from bench.sandbox import Sandbox
from runyard.snapshots import SnapshotStore, freeze, pack_missing

FILES = 10_000
MEGABYTES = 300


def snapshots(sandbox: Sandbox, size: Size) -> Iterator[Row]:
    files, megabytes = size.scaled(FILES, 100), size.scaled(MEGABYTES)
    tree = make_tree(sandbox.folder("tree"), files=files, megabytes=megabytes)
    wait_until_stable(tree)
    scratch = sandbox.folder("snapshots")
    first = time_first(tree, scratch, rounds=min(size.rounds, 5))
    peers = {}
    if size.peers:
        peers = {"`cp -r`": _copy_time(tree, sandbox.root / "copy"), **_git_add_time(tree, sandbox.root / "git")}
    yield Row(
        f"snapshot of {files:,} files, {megabytes} MB, first time",
        first["snapshot_s"],
        ("one tar", first["tar_s"]),
        Goal(2, relative=True),
        peers=peers,
        notes=("minimum of all rounds",),
    )
    again = time_repeated(tree, scratch, rounds=min(size.rounds, 9))
    yield Row(
        "the same after one file has changed",
        again["freeze_s"],
        ("stat of every file", again["walk_s"]),
        Goal(2, relative=True),
        peers={"including the transfer to the yard": again["snapshot_s"]},
        notes=("minimum of all rounds",),
    )


def _copy_time(tree: Path, copy: Path) -> float:
    started_at = perf_counter()
    subprocess.run(["cp", "-r", str(tree), str(copy)], check=True)
    took = perf_counter() - started_at
    shutil.rmtree(copy)
    return took


def _git_add_time(tree: Path, repository: Path) -> dict[str, float]:
    if shutil.which("git") is None:
        return {}
    repository.mkdir()
    git = ["git", f"--git-dir={repository}/.git", f"--work-tree={tree}"]
    subprocess.run(["git", "init", "--quiet", str(repository)], check=True)
    started_at = perf_counter()
    subprocess.run([*git, "add", "--all"], cwd=tree, check=True)
    took = perf_counter() - started_at
    shutil.rmtree(repository)
    return {"`git add`": took}


def make_tree(root: Path, *, files: int = FILES, megabytes: int = MEGABYTES) -> Path:
    """Create files of different sizes and unique contents, 100 per folder."""
    dice = random.Random(1)
    mean = megabytes * 1_000_000 // files
    for number in range(files):
        folder = root / f"part{number // 1000:02d}" / f"group{number // 100 % 10}"
        if number % 100 == 0:
            folder.mkdir(parents=True, exist_ok=True)
        (folder / f"file{number:05d}.bin").write_bytes(dice.randbytes(dice.randint(mean // 2, mean * 3 // 2)))
    return root


def time_first(tree: Path, scratch: Path, *, rounds: int = 3) -> dict[str, float]:
    """Return the minimum seconds of `tar cf` and of a snapshot into an empty store, measured alternately."""
    times: dict[str, list[float]] = {"tar_s": [], "snapshot_s": []}
    for _ in range(rounds):
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        times["tar_s"].append(
            _timed(
                lambda: subprocess.run(["tar", "cf", scratch / "all.tar", tree], check=True, stderr=subprocess.DEVNULL)
            )
        )
        (scratch / "all.tar").unlink()
        times["snapshot_s"].append(_timed(lambda: snapshot(tree, scratch)))
    shutil.rmtree(scratch, ignore_errors=True)
    return {name: min(seconds) for name, seconds in times.items()}


def time_repeated(tree: Path, scratch: Path, *, rounds: int = 5) -> dict[str, float]:
    """Return the minimum seconds of a bare walk, of freezing with one changed file, and of the complete snapshot."""
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    snapshot(tree, scratch)
    changed = next(tree.rglob("*.bin"))
    times: dict[str, list[float]] = {"walk_s": [], "freeze_s": [], "snapshot_s": []}
    store = SnapshotStore(scratch / "store")
    store.missing(["00" * 32])  # warm up, as in a running yard
    for number in range(rounds):
        changed.write_bytes(b"changed %d" % number)
        times["walk_s"].append(_timed(lambda: walk(tree)))
        times["freeze_s"].append(_timed(lambda: freeze(tree, index_folder=scratch / "index")))
        changed.write_bytes(b"changed again %d" % number)
        times["walk_s"].append(_timed(lambda: walk(tree)))
        times["snapshot_s"].append(_timed(lambda: snapshot(tree, scratch, store)))
    shutil.rmtree(scratch, ignore_errors=True)
    return {name: min(seconds) for name, seconds in times.items()}


def snapshot(tree: Path, scratch: Path, store: SnapshotStore | None = None) -> str:
    """Take a snapshot as a submission does; return its id."""
    store = store or SnapshotStore(scratch / "store")
    frozen = freeze(tree, index_folder=scratch / "index", pack_to=store.incoming / f"{os.urandom(8).hex()}.pack")
    if store.has(frozen.id):
        return frozen.id
    pack = pack_missing(frozen, store.missing(frozen.manifest.digests), store.incoming / f"{os.urandom(8).hex()}.pack")
    return store.add(frozen.manifest.to_bytes(), pack)


def walk(folder: Path) -> int:
    """Call stat on every file, which is the lower bound; return the number of files."""
    count = 0
    waiting = [os.fspath(folder)]
    while waiting:
        with os.scandir(waiting.pop()) as listing:
            for entry in listing:
                entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    count += 1
    return count


def wait_until_stable(tree: Path) -> None:
    """Wait until no file is newer than two seconds: such files are read again by design."""
    newest = max(entry.stat().st_ctime for entry in tree.rglob("*"))
    while newest + 2.1 > time():
        sleep(0.1)


def _timed(work: Callable[[], object]) -> float:
    gc.collect()
    start = perf_counter()
    work()
    return perf_counter() - start
