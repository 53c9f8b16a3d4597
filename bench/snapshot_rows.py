"""Rows of the bench about snapshots: against `tar` of the same folder, and against a bare walk with stat."""

from __future__ import annotations

import gc
import os
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, sleep, time

from runyard.snapshots import SnapshotStore, freeze, pack_missing

FILES = 10_000
MEGABYTES = 300


def make_tree(root: Path, *, files: int = FILES, megabytes: int = MEGABYTES) -> Path:
    """A folder of that many files of different sizes, 100 to a folder, with contents that do not repeat."""
    dice = random.Random(1)
    mean = megabytes * 1_000_000 // files
    for number in range(files):
        folder = root / f"part{number // 1000:02d}" / f"group{number // 100 % 10}"
        if number % 100 == 0:
            folder.mkdir(parents=True, exist_ok=True)
        (folder / f"file{number:05d}.bin").write_bytes(dice.randbytes(dice.randint(mean // 2, mean * 3 // 2)))
    return root


def time_first(tree: Path, scratch: Path, *, rounds: int = 3) -> dict[str, float]:
    """Seconds of `tar cf` and of freeze, pack and add into an empty depot; the best of some rounds, taken in turns."""
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


def time_again(tree: Path, scratch: Path, *, rounds: int = 5) -> dict[str, float]:
    """Seconds of a bare walk, of freezing the folder with one file changed, and of the whole hand-over of that."""
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    snapshot(tree, scratch)
    changed = next(tree.rglob("*.bin"))
    times: dict[str, list[float]] = {"walk_s": [], "freeze_s": [], "snapshot_s": []}
    store = SnapshotStore(scratch / "depot")
    store.missing(["00" * 32])  # the yard is warm
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
    """What a submission does with its folder."""
    store = store or SnapshotStore(scratch / "depot")
    frozen = freeze(tree, index_folder=scratch / "index", pack_to=store.incoming / f"{os.urandom(8).hex()}.pack")
    if store.has(frozen.id):
        return frozen.id
    pack = pack_missing(frozen, store.missing(frozen.manifest.digests), store.incoming / f"{os.urandom(8).hex()}.pack")
    return store.add(frozen.manifest.to_bytes(), pack)


def walk(folder: Path) -> int:
    """The limit: list every folder and ask for the stat of every file."""
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


def wait_until_settled(tree: Path) -> None:
    """Files of the last two seconds are read again by design; a folder that people work in is older than that."""
    newest = max(entry.stat().st_ctime for entry in tree.rglob("*"))
    while newest + 2.1 > time():
        sleep(0.1)


def _timed(work: Callable[[], object]) -> float:
    gc.collect()
    start = perf_counter()
    work()
    return perf_counter() - start
