"""Path patterns: ``*`` and ``?`` match within a name, ``**`` matches any number of folders.

Matches without regular expressions: those take exponential time for patterns with many stars.
"""

from __future__ import annotations

from collections.abc import Sequence

ANY_FOLDERS = "**"


def is_pattern(path: str) -> bool:
    return "*" in path or "?" in path


class Pattern:
    def __init__(self, path: str) -> None:
        parts = path.split("/")
        if parts[-1] == ANY_FOLDERS:  # matches the files below a folder, not the folder itself
            parts.append("*")
        first = next((index for index, part in enumerate(parts) if is_pattern(part)), len(parts))
        self.folder = "/".join(parts[:first])  # all matches are below this folder
        self._parts = [part if part == ANY_FOLDERS else _NamePattern(part) for part in parts[first:]]

    def matches(self, path: str) -> bool:
        """True if a path below ``folder`` matches."""
        names = path[len(self.folder) :].lstrip("/").split("/") if self.folder else path.split("/")
        part = name = backtrack = 0
        star = -1
        while name < len(names):
            pattern = self._parts[part] if part < len(self._parts) else None
            if pattern == ANY_FOLDERS:
                star, backtrack, part = part, name, part + 1
            elif isinstance(pattern, _NamePattern) and pattern.matches(names[name]):
                part, name = part + 1, name + 1
            elif star >= 0:  # let the last ** match one more folder
                backtrack += 1
                part, name = star + 1, backtrack
            else:
                return False
        return all(rest == ANY_FOLDERS for rest in self._parts[part:])


class _NamePattern:
    """Matches one name: the pieces between stars, each at its leftmost position."""

    def __init__(self, text: str) -> None:
        first, *rest = text.split("*")
        self._first, self._middle, self._last = first, [piece for piece in rest[:-1] if piece], rest[-1:]

    def matches(self, name: str) -> bool:
        if not self._last:
            return len(name) == len(self._first) and _is_at(self._first, name, 0)
        last = self._last[0]
        end = len(name) - len(last)
        position = len(self._first)
        if end < position or not _is_at(self._first, name, 0) or not _is_at(last, name, end):
            return False
        for piece in self._middle:
            index = _find(piece, name, position)
            if index < 0 or index + len(piece) > end:
                return False
            position = index + len(piece)
        return True


def _find(piece: str, name: str, start: int) -> int:
    if "?" not in piece:
        return name.find(piece, start)
    positions: Sequence[int] = range(start, len(name) - len(piece) + 1)
    return next((position for position in positions if _is_at(piece, name, position)), -1)


def _is_at(piece: str, name: str, position: int) -> bool:
    if "?" not in piece:
        return name.startswith(piece, position)
    part = name[position : position + len(piece)]
    return len(part) == len(piece) and all(letter in ("?", other) for letter, other in zip(piece, part))
