"""The cache of contents: each once, in trees for runs, with a limit that spares what runs read."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from runyard.data.cache import LIMIT, Cache, Leaf, copy_tree, key_of, note_trees, trees_in_use
from runyard.spec.folder import RunFolder


def taken(cache: Cache, *contents: bytes) -> list[Leaf]:
    leaves = []
    for number, content in enumerate(contents):
        digest = hashlib.sha256(content).hexdigest()
        arriving = cache.incoming(f"{number}-{digest}")
        arriving.write_bytes(content)
        cache.take(digest, arriving)
        leaves.append(Leaf(f"folder/{number}.bin", digest, len(content)))
    return leaves


def never(leaf: Leaf) -> None:
    raise AssertionError(f"{leaf.path} was asked for")


def used_at(cache_root: Path, leaves: list[Leaf], when: float) -> None:
    os.utime(cache_root / "trees" / f"{key_of(leaves)}.json", (when, when))


def test_the_same_files_are_one_tree_and_take_room_once(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    leaves = taken(cache, b"one", b"two", b"two")
    tree = cache.tree(leaves, never)
    assert cache.tree(list(reversed(leaves)), never) == tree
    assert (tree / "folder" / "1.bin").read_bytes() == b"two"
    assert cache.size() == len(b"one") + len(b"two")


def test_a_file_that_was_written_to_is_fetched_anew(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    leaves = taken(cache, b"right")
    file = cache.tree(leaves, never) / "folder" / "0.bin"
    file.chmod(0o600)
    file.write_bytes(b"wrong")
    asked = []

    def again(leaf: Leaf) -> None:
        asked.append(leaf.path)
        taken(cache, b"right")

    assert (cache.tree(leaves, again) / "folder" / "0.bin").read_bytes() == b"right"
    assert asked == ["folder/0.bin"]


def test_above_the_limit_what_was_least_used_goes_and_what_runs_read_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    cache = Cache(tmp_path / "cache", lambda: trees_in_use(home))
    sets = [taken(cache, bytes([number]) * 1000, b"shared" * 10) for number in range(4)]
    trees = [cache.tree(leaves, never) for leaves in sets]
    for age, number in enumerate((2, 0, 3, 1)):  # the second is the one that was used last
        used_at(tmp_path / "cache", sets[number], 1_000_000 + age)
    run = RunFolder(home / "runs" / "live")
    run.root.mkdir(parents=True)
    note_trees(run, [key_of(sets[2])])  # least used, and a run reads it
    monkeypatch.setenv(LIMIT, str(2200 / 1e9))
    assert cache.make_room() == [key_of(sets[0]), key_of(sets[3])]
    assert [tree.exists() for tree in trees] == [False, True, True, False]
    assert (trees[2] / "folder" / "1.bin").read_bytes() == b"shared" * 10
    assert cache.size() <= 2200
    run.data_record.unlink()
    monkeypatch.setenv(LIMIT, "0")
    cache.make_room()
    assert cache.size() == 0


def test_a_tree_that_is_being_handed_over_is_spared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(tmp_path)
    leaves = taken(cache, b"x" * 1000)
    cache.hold(key_of(leaves), 1)
    tree = cache.tree(leaves, never)
    monkeypatch.setenv(LIMIT, "0")
    assert cache.make_room() == []
    cache.hold(key_of(leaves), -1)
    assert cache.make_room() == [key_of(leaves)]
    assert not tree.exists()


def test_a_copy_is_whole_and_may_be_written_to(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    leaves = taken(cache, b"one", b"two")
    tree = cache.tree(leaves, never)
    copy_tree(tree, leaves, tmp_path / "copy")
    (tmp_path / "copy" / "folder" / "0.bin").write_bytes(b"mine")
    assert (tree / "folder" / "0.bin").read_bytes() == b"one"
