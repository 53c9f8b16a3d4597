"""The cache of contents: each once, in trees for runs, with a limit that spares what runs read."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from runyard.data.cache import LIMIT, Cache, Leaf, copy_tree, key_of, record_trees, trees_in_use
from runyard.spec.folder import RunFolder


def taken(cache: Cache, *contents: bytes) -> list[Leaf]:
    leaves = []
    for number, content in enumerate(contents):
        digest = hashlib.sha256(content).hexdigest()
        arriving = cache.incoming_path(f"{number}-{digest}")
        arriving.write_bytes(content)
        cache.add(digest, arriving)
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
    record_trees(run, [key_of(sets[2])])  # least used, and a run reads it
    monkeypatch.setenv(LIMIT, str(2200 / 1e9))
    assert cache.evict() == [key_of(sets[0]), key_of(sets[3])]
    assert [tree.exists() for tree in trees] == [False, True, True, False]
    assert (trees[2] / "folder" / "1.bin").read_bytes() == b"shared" * 10
    assert cache.size() <= 2200
    run.data_record.unlink()
    monkeypatch.setenv(LIMIT, "0")
    cache.evict()
    assert cache.size() == 0


def test_a_tree_that_is_being_handed_over_is_spared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(tmp_path)
    leaves = taken(cache, b"x" * 1000)
    cache.hold(key_of(leaves))
    tree = cache.tree(leaves, never)
    monkeypatch.setenv(LIMIT, "0")
    assert cache.evict() == []
    cache.release(key_of(leaves))
    assert cache.evict() == [key_of(leaves)]
    assert not tree.exists()


def test_a_tree_that_a_run_was_given_while_others_go_is_spared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def in_use() -> set[str]:
        for action in meanwhile:  # after the answer was found, before anything is removed
            action()
        return set()

    cache = Cache(tmp_path, in_use)
    sets = [taken(cache, bytes([number]) * 1000) for number in range(4)]
    trees = [cache.tree(leaves, never) for leaves in sets]
    for age, leaves in enumerate(sets):
        used_at(tmp_path, leaves, 1_000_000 + age)
    spoiled = trees[2] / "folder" / "0.bin"
    meanwhile = [
        lambda: cache.hold(key_of(sets[0])),
        lambda: cache.tree(sets[1], never),
        lambda: spoiled.unlink(),
        lambda: cache.tree(sets[2], never),
    ]
    monkeypatch.setenv(LIMIT, "0")
    assert cache.evict() == [key_of(sets[3])]
    assert [tree.exists() for tree in trees] == [True, True, True, False]
    meanwhile.clear()
    cache.release(key_of(sets[0]))
    assert sorted(cache.evict()) == sorted(key_of(leaves) for leaves in sets[:3])


def test_room_is_made_by_one_at_a_time_and_what_vanishes_meanwhile_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_use() -> set[str]:
        asked.append(cache.evict())
        return set()

    asked: list[list[str]] = []
    cache = Cache(tmp_path, in_use)
    leaves = taken(cache, b"x" * 1000)
    cache.tree(leaves, never)
    # listed, and then not there: a link that leads nowhere is just that
    (tmp_path / "trees" / "vanished.json").symlink_to("nowhere")
    next((tmp_path / "content").iterdir()).joinpath("vanished").symlink_to("nowhere")
    monkeypatch.setenv(LIMIT, "0")
    assert cache.evict() == [key_of(leaves)]
    assert asked == [[]]
    assert cache.size() == 0


def test_what_came_while_room_was_made_is_counted_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_use() -> set[str]:
        if not late:
            late.extend(taken(cache, b"late" * 1000))
        return set()

    late: list[Leaf] = []
    cache = Cache(tmp_path, in_use)
    cache.tree(taken(cache, b"a" * 2000), never)
    cache.tree(taken(cache, b"b" * 2000), never)
    monkeypatch.setenv(LIMIT, str(2500 / 1e9))
    for _ in range(2):
        cache.evict()
    assert cache.size() <= 2500


def test_a_tree_is_removed_though_its_maker_was_killed_at_the_last_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def kill(draft: Path, folder: Path) -> None:
        if draft.name.startswith(key_of(sets[1])):
            draft.replace(folder)
        raise Killed

    cache = Cache(tmp_path)
    sets = [taken(cache, b"a" * 1000), taken(cache, b"b" * 1000)]  # just before it is in place, and just after
    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", kill)
        for leaves in sets:
            with pytest.raises(Killed):
                cache.tree(leaves, never)
    used_at(tmp_path, sets[0], 1_000_000)
    monkeypatch.setenv(LIMIT, "0")
    cache.evict()
    assert cache.size() == 0
    assert list((tmp_path / "trees").iterdir()) == []


def test_a_copy_is_whole_and_may_be_written_to(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    leaves = taken(cache, b"one", b"two")
    tree = cache.tree(leaves, never)
    copy_tree(tree, leaves, tmp_path / "copy")
    (tmp_path / "copy" / "folder" / "0.bin").write_bytes(b"mine")
    assert (tree / "folder" / "0.bin").read_bytes() == b"one"
