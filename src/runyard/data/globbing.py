"""Patterns of paths: ``*`` and ``?`` stand for what is in a name, ``**`` for any folders.

Not by regular expressions: a pattern with many stars would keep them busy for years on a path that does not fit.
"""

from __future__ import annotations

from collections.abc import Sequence

ANY_FOLDERS = "**"


def is_pattern(path: str) -> bool:
    return "*" in path or "?" in path


class Pattern:
    def __init__(self, path: str) -> None:
        parts = path.split("/")
        if parts[-1] == ANY_FOLDERS:  # what is below a folder, and not the folder itself
            parts.append("*")
        first = next((number for number, part in enumerate(parts) if is_pattern(part)), len(parts))
        self.folder = "/".join(parts[:first])  # what all that fits is below of
        self._parts = [part if part == ANY_FOLDERS else _Name(part) for part in parts[first:]]

    def fits(self, path: str) -> bool:
        """Of a path below the folder."""
        names = path[len(self.folder) :].lstrip("/").split("/") if self.folder else path.split("/")
        part = name = back = 0
        star = -1
        while name < len(names):
            wanted = self._parts[part] if part < len(self._parts) else None
            if wanted == ANY_FOLDERS:
                star, back, part = part, name, part + 1
            elif isinstance(wanted, _Name) and wanted.fits(names[name]):
                part, name = part + 1, name + 1
            elif star >= 0:  # the folders that ** stands for are one more
                back += 1
                part, name = star + 1, back
            else:
                return False
        return all(rest == ANY_FOLDERS for rest in self._parts[part:])


class _Name:
    """One name: pieces between stars, each found as far left as it can be."""

    def __init__(self, text: str) -> None:
        first, *rest = text.split("*")
        self._first, self._middle, self._last = first, [piece for piece in rest[:-1] if piece], rest[-1:]

    def fits(self, name: str) -> bool:
        if not self._last:
            return len(name) == len(self._first) and _is_at(self._first, name, 0)
        last = self._last[0]
        end = len(name) - len(last)
        at = len(self._first)
        if end < at or not _is_at(self._first, name, 0) or not _is_at(last, name, end):
            return False
        for piece in self._middle:
            found = _find(piece, name, at)
            if found < 0 or found + len(piece) > end:
                return False
            at = found + len(piece)
        return True


def _find(piece: str, name: str, start: int) -> int:
    if "?" not in piece:
        return name.find(piece, start)
    places: Sequence[int] = range(start, len(name) - len(piece) + 1)
    return next((at for at in places if _is_at(piece, name, at)), -1)


def _is_at(piece: str, name: str, at: int) -> bool:
    if "?" not in piece:
        return name.startswith(piece, at)
    there = name[at : at + len(piece)]
    return len(there) == len(piece) and all(letter in ("?", other) for letter, other in zip(piece, there))
