"""Compares two environment locks: the packages whose versions differ."""

from __future__ import annotations

import re

_PINNED = re.compile(r"([A-Za-z0-9][\w.\-]*)\s*(?:\[[^\]]*\])?\s*(?:===?|=|@)\s*(\S+)")
_PYTHON = re.compile(r"# Python (\S+)")


def packages_in(lock: str) -> dict[str, str]:
    """Package name -> version, including Python itself."""
    versions: dict[str, str] = {}
    for line in lock.splitlines():
        python = _PYTHON.match(line)
        if python is not None:
            versions["python"] = python[1]
            continue
        pinned = _PINNED.match(line.strip())
        if pinned is not None and not line.startswith("#"):
            versions[re.sub(r"[-_.]+", "-", pinned[1]).lower()] = pinned[2]
    return versions


def compare(a: str, b: str) -> list[tuple[str, str | None, str | None]]:
    """(package, version in a, version in b) for all differences, sorted by name."""
    before, after = packages_in(a), packages_in(b)
    names = sorted(before.keys() | after.keys())
    return [(name, before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)]
