"""Differences between two snapshots: changed files and their line diffs."""

from __future__ import annotations

import difflib
from typing import NamedTuple, Optional

from runyard.snapshots.manifest import Entry
from runyard.snapshots.store import SnapshotStore

_MAX_BYTES = 1 << 20
_MAX_LINES = 8000  # the worst case takes quadratic time
_MAX_DIFFS = 200


class Change(NamedTuple):
    path: str
    change: str  # "added", "removed", "changed"
    diff: Optional[str]  # unified; None for binary data and long files


def compare(store: SnapshotStore, a: Optional[str], b: Optional[str]) -> list[Change]:
    """The changes from snapshot ``a`` to ``b``, sorted by path. None stands for an empty snapshot."""
    before, after = _entries(store, a), _entries(store, b)
    changes: list[Change] = []
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if old == new:
            continue
        change = "added" if old is None else "removed" if new is None else "changed"
        diff = None
        if len(changes) < _MAX_DIFFS:
            diff = _diff(path, _lines(store, a, old), _lines(store, b, new))
        changes.append(Change(path, change, diff))
    return changes


def _entries(store: SnapshotStore, snapshot_id: Optional[str]) -> dict[str, Entry]:
    return {entry.path: entry for entry in store.manifest(snapshot_id).entries} if snapshot_id else {}


def _lines(store: SnapshotStore, snapshot_id: Optional[str], entry: Optional[Entry]) -> Optional[list[str]]:
    """The lines of an entry; None for binary data and long files."""
    if entry is None or snapshot_id is None:
        return []
    if entry.kind == "link":
        return [f"-> {entry.target}\n"]
    if entry.kind != "file" or entry.size > _MAX_BYTES:
        return None
    content = store.read(snapshot_id, entry.path)
    if b"\0" in content:
        return None
    lines = content.decode("utf-8", "replace").splitlines(keepends=True)
    return lines if len(lines) <= _MAX_LINES else None


def _diff(path: str, old: Optional[list[str]], new: Optional[list[str]]) -> Optional[str]:
    if old is None or new is None:
        return None
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        for line in difflib.unified_diff(old, new, f"a/{path}", f"b/{path}")
    )
