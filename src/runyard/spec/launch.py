"""How the processes of a run are started. One kind so far: further kinds are further classes here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Single:
    """One process of the entry script."""

    kind: str = "single"


Launch = Single
