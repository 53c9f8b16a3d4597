"""How the agents of one run find each other: each writes that it is there, and waits until all have."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from runyard import clock
from runyard.agent.bell import ring
from runyard.spec.folder import RunFolder

_PATIENCE_S = 120.0
_LOOK_S = 0.02


class Missing(Exception):
    """Its text names the nodes that did not come."""


@dataclass(frozen=True)
class Hello:
    ports: tuple[str, ...]
    bell: str


def meet(
    folder: RunFolder,
    names: list[str],
    node_rank: int,
    hello: Hello,
    *,
    pause: Callable[[float], bool],
    patience_s: float = _PATIENCE_S,
) -> Optional[list[Hello]]:
    """What everybody said, in order of the nodes; None when ``pause`` says that there is nothing to wait for."""
    mine = folder.hello(node_rank)
    mine.parent.mkdir(parents=True, exist_ok=True)
    write_whole(mine, {"name": names[node_rank], "ports": hello.ports, "bell": hello.bell})
    for there in filter(None, (_read(folder.hello(number)) for number in range(len(names)) if number != node_rank)):
        ring(there.bell)  # the last one to come wakes all that wait
    deadline = clock.monotonic() + patience_s
    while True:
        found = [_read(folder.hello(number)) for number in range(len(names))]
        present = [one for one in found if one is not None]
        if len(present) == len(names):
            return present
        if clock.monotonic() > deadline:
            missing = ", ".join(name for name, one in zip(names, found) if one is None)
            raise Missing(f"not all nodes came within {patience_s:.0f} s; missing: {missing}")
        if not pause(_LOOK_S):
            return None


def write_whole(path: Path, value: Any) -> None:
    """All of it or nothing: a reader never meets half a file."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.draft")
    draft.write_text(json.dumps(value), encoding="utf-8")
    draft.replace(path)


def _read(path: Path) -> Optional[Hello]:
    try:
        said = json.loads(path.read_bytes())
        return Hello(tuple(said["ports"]), said["bell"])
    except (OSError, ValueError):
        return None
