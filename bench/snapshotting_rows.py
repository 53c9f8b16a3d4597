"""Freezing a big folder: the first time, and again with one file changed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from bench.place import Place
from bench.row import Goal, Row, Size
from bench.snapshot_rows import FILES, MEGABYTES, make_tree, time_again, time_first, wait_until_settled


def snapshots(place: Place, size: Size) -> Iterator[Row]:
    files, megabytes = size.of(FILES, 100), size.of(MEGABYTES)
    tree = make_tree(place.folder("tree"), files=files, megabytes=megabytes)
    wait_until_settled(tree)
    scratch = place.folder("snapshots")
    first = time_first(tree, scratch, rounds=min(size.rounds, 5))
    peers = (
        {"`cp -r`": _copied(tree, place.root / "copy"), **_added_to_git(tree, place.root / "git")} if size.peers else {}
    )
    yield Row(
        f"snapshot of {files:,} files, {megabytes} MB, first time",
        first["snapshot_s"],
        ("one tar", first["tar_s"]),
        Goal(2, times=True),
        peers=peers,
        notes=("best of the rounds",),
    )
    again = time_again(tree, scratch, rounds=min(size.rounds, 9))
    yield Row(
        "the same with one file changed",
        again["freeze_s"],
        ("stat of every file", again["walk_s"]),
        Goal(2, times=True),
        peers={"with the hand-over to the yard's depot": again["snapshot_s"]},
        notes=("best of the rounds",),
    )


def _copied(tree: Path, copy: Path) -> float:
    began = perf_counter()
    subprocess.run(["cp", "-r", str(tree), str(copy)], check=True)
    took = perf_counter() - began
    shutil.rmtree(copy)
    return took


def _added_to_git(tree: Path, repository: Path) -> dict[str, float]:
    if shutil.which("git") is None:
        return {}
    repository.mkdir()
    git = ["git", f"--git-dir={repository}/.git", f"--work-tree={tree}"]
    subprocess.run(["git", "init", "--quiet", str(repository)], check=True)
    began = perf_counter()
    subprocess.run([*git, "add", "--all"], cwd=tree, check=True)
    took = perf_counter() - began
    shutil.rmtree(repository)
    return {"`git add`": took}
