"""Two snapshots side by side: which files differ, and how."""

from __future__ import annotations

import difflib
from typing import NamedTuple, Optional

from runyard.snapshots.manifest import Entry
from runyard.snapshots.store import Depot

_LONGEST = 1 << 20
_MOST_LINES = 8000  # comparing takes the square of it, at worst
_MOST_DIFFS = 200


class Change(NamedTuple):
    path: str
    change: str  # "added", "removed", "changed"
    diff: Optional[str]  # unified; None when it is no text, or too long


def compare(depot: Depot, a: Optional[str], b: Optional[str]) -> list[Change]:
    """From the snapshot ``a`` to ``b``, by path. None is a snapshot with nothing in it."""
    before, after = _entries(depot, a), _entries(depot, b)
    changes: list[Change] = []
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if old == new:
            continue
        change = "added" if old is None else "removed" if new is None else "changed"
        diff = None
        if len(changes) < _MOST_DIFFS:
            diff = _diff(path, _lines(depot, a, old), _lines(depot, b, new))
        changes.append(Change(path, change, diff))
    return changes


def _entries(depot: Depot, snapshot_id: Optional[str]) -> dict[str, Entry]:
    return {entry.path: entry for entry in depot.manifest(snapshot_id).entries} if snapshot_id else {}


def _lines(depot: Depot, snapshot_id: Optional[str], entry: Optional[Entry]) -> Optional[list[str]]:
    """None: it cannot be shown line by line."""
    if entry is None or snapshot_id is None:
        return []
    if entry.kind == "link":
        return [f"-> {entry.target}\n"]
    if entry.kind != "file" or entry.size > _LONGEST:
        return None
    content = depot.read(snapshot_id, entry.path)
    if b"\0" in content:
        return None
    lines = content.decode("utf-8", "replace").splitlines(keepends=True)
    return lines if len(lines) <= _MOST_LINES else None


def _diff(path: str, old: Optional[list[str]], new: Optional[list[str]]) -> Optional[str]:
    if old is None or new is None:
        return None
    told = []
    for line in difflib.unified_diff(old, new, f"a/{path}", f"b/{path}"):
        told.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(told)
