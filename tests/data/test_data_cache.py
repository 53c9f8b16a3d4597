"""The content cache: contents are stored once, shared by trees, and evicted except for trees in use."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from runyard.data.cache import LIMIT, Cache, Leaf, copy_tree, key_of, record_trees, trees_in_use
from runyard.spec.folder import RunFolder


def add_contents(cache: Cache, *contents: bytes) -> list[Leaf]:
    leaves = []
    for number, content in enumerate(contents):
        digest = hashlib.sha256(content).hexdigest()
        path = cache.incoming_path(f"{number}-{digest}")
        path.write_bytes(content)
        cache.add(digest, path)
        leaves.append(Leaf(f"folder/{number}.bin", digest, len(content)))
    return leaves


def fail(leaf: Leaf) -> None:
    raise AssertionError(f"{leaf.path} is missing")


def set_last_use(cache_root: Path, leaves: list[Leaf], time: float) -> None:
    os.utime(cache_root / "trees" / f"{key_of(leaves)}.json", (time, time))


def test_equal_files_share_a_tree(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    leaves = add_contents(cache, b"one", b"two", b"two")
    tree = cache.tree(leaves, fail)
    assert cache.tree(list(reversed(leaves)), fail) == tree
    assert (tree / "folder" / "1.bin").read_bytes() == b"two"
    assert cache.size() == len(b"one") + len(b"two")


def test_a_modified_file_is_fetched_again(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    leaves = add_contents(cache, b"right")
    file = cache.tree(leaves, fail) / "folder" / "0.bin"
    file.chmod(0o600)
    file.write_bytes(b"wrong")
    fetched = []

    def fetch(leaf: Leaf) -> None:
        fetched.append(leaf.path)
        add_contents(cache, b"right")

    assert (cache.tree(leaves, fetch) / "folder" / "0.bin").read_bytes() == b"right"
    assert fetched == ["folder/0.bin"]


def test_evict_removes_the_least_recently_used_trees_except_those_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    cache = Cache(tmp_path / "cache", lambda: trees_in_use(home))
    sets = [add_contents(cache, bytes([number]) * 1000, b"shared" * 10) for number in range(4)]
    trees = [cache.tree(leaves, fail) for leaves in sets]
    for age, number in enumerate((2, 0, 3, 1)):  # the second one was used last
        set_last_use(tmp_path / "cache", sets[number], 1_000_000 + age)
    run = RunFolder(home / "runs" / "live")
    run.root.mkdir(parents=True)
    record_trees(run, [key_of(sets[2])])  # least recently used, but in use by a run
    monkeypatch.setenv(LIMIT, str(2200 / 1e9))
    assert cache.evict() == [key_of(sets[0]), key_of(sets[3])]
    assert [tree.exists() for tree in trees] == [False, True, True, False]
    assert (trees[2] / "folder" / "1.bin").read_bytes() == b"shared" * 10
    assert cache.size() <= 2200
    run.data_record.unlink()
    monkeypatch.setenv(LIMIT, "0")
    cache.evict()
    assert cache.size() == 0


def test_a_held_tree_is_not_evicted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(tmp_path)
    leaves = add_contents(cache, b"x" * 1000)
    cache.hold(key_of(leaves))
    tree = cache.tree(leaves, fail)
    monkeypatch.setenv(LIMIT, "0")
    assert cache.evict() == []
    cache.release(key_of(leaves))
    assert cache.evict() == [key_of(leaves)]
    assert not tree.exists()


def test_a_tree_that_is_used_during_an_eviction_is_not_evicted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def in_use() -> set[str]:
        for action in concurrent_actions:  # after the trees in use are known, before any is removed
            action()
        return set()

    cache = Cache(tmp_path, in_use)
    sets = [add_contents(cache, bytes([number]) * 1000) for number in range(4)]
    trees = [cache.tree(leaves, fail) for leaves in sets]
    for age, leaves in enumerate(sets):
        set_last_use(tmp_path, leaves, 1_000_000 + age)
    modified = trees[2] / "folder" / "0.bin"
    concurrent_actions = [
        lambda: cache.hold(key_of(sets[0])),
        lambda: cache.tree(sets[1], fail),
        lambda: modified.unlink(),
        lambda: cache.tree(sets[2], fail),
    ]
    monkeypatch.setenv(LIMIT, "0")
    assert cache.evict() == [key_of(sets[3])]
    assert [tree.exists() for tree in trees] == [True, True, True, False]
    concurrent_actions.clear()
    cache.release(key_of(sets[0]))
    assert sorted(cache.evict()) == sorted(key_of(leaves) for leaves in sets[:3])


def test_evict_is_not_reentrant_and_ignores_deleted_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def in_use() -> set[str]:
        nested.append(cache.evict())
        return set()

    nested: list[list[str]] = []
    cache = Cache(tmp_path, in_use)
    leaves = add_contents(cache, b"x" * 1000)
    cache.tree(leaves, fail)
    # dangling links behave like files that are deleted after they are listed
    (tmp_path / "trees" / "vanished.json").symlink_to("nowhere")
    next((tmp_path / "content").iterdir()).joinpath("vanished").symlink_to("nowhere")
    monkeypatch.setenv(LIMIT, "0")
    assert cache.evict() == [key_of(leaves)]
    assert nested == [[]]
    assert cache.size() == 0


def test_contents_added_during_an_eviction_are_counted_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_use() -> set[str]:
        if not late:
            late.extend(add_contents(cache, b"late" * 1000))
        return set()

    late: list[Leaf] = []
    cache = Cache(tmp_path, in_use)
    cache.tree(add_contents(cache, b"a" * 2000), fail)
    cache.tree(add_contents(cache, b"b" * 2000), fail)
    monkeypatch.setenv(LIMIT, str(2500 / 1e9))
    for _ in range(2):
        cache.evict()
    assert cache.size() <= 2500


def test_a_tree_is_evicted_although_its_creator_was_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        pass

    def kill(draft: Path, folder: Path) -> None:
        if draft.name.startswith(key_of(sets[1])):
            draft.replace(folder)
        raise Killed

    cache = Cache(tmp_path)
    sets = [add_contents(cache, b"a" * 1000), add_contents(cache, b"b" * 1000)]  # killed before and after the rename
    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", kill)
        for leaves in sets:
            with pytest.raises(Killed):
                cache.tree(leaves, fail)
    set_last_use(tmp_path, sets[0], 1_000_000)
    monkeypatch.setenv(LIMIT, "0")
    cache.evict()
    assert cache.size() == 0
    assert list((tmp_path / "trees").iterdir()) == []


def test_a_copy_is_writable_and_independent(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    leaves = add_contents(cache, b"one", b"two")
    tree = cache.tree(leaves, fail)
    copy_tree(tree, leaves, tmp_path / "copy")
    (tmp_path / "copy" / "folder" / "0.bin").write_bytes(b"changed")
    assert (tree / "folder" / "0.bin").read_bytes() == b"one"
