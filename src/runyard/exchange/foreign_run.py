"""A run as another program left it on disk: what all readers give and the import takes."""

from __future__ import annotations

import hashlib
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Optional

COMPLETED, FAILED, CANCELED = "Completed", "Failed", "Canceled"
NOT_ENDED = "NotEnded"  # it may go on, and be imported again


class Curve(NamedTuple):
    """All points of one metric, in the order in which they were logged."""

    name: str
    steps: array[int]
    times: array[float]  # seconds
    values: array[float]


@dataclass(frozen=True)
class FoundRun:
    run_id: str
    experiment: str  # any text
    name: str
    status: str
    created_at: float
    ended_at: Optional[float]
    source: str  # "mlflow", "tensorboard", "wandb"
    curves: Callable[[], Iterator[Curve]]
    parent_id: Optional[str] = None
    user: str = ""
    message: str = ""  # why it failed
    tags: dict[str, str] = field(default_factory=dict)
    params: dict[str, str] = field(default_factory=dict)
    files: Sequence[tuple[str, Path]] = ()


def new_curve(name: str) -> Curve:
    return Curve(name, array("q"), array("d"), array("d"))


def add(curve: Curve, step: int, time: float, value: float) -> None:
    curve.steps.append(step)
    curve.times.append(time)
    curve.values.append(value)


def an_id(*parts: str) -> str:
    """The same for the same parts, on any machine and at any time; readable where the parts are."""
    made = re.sub(r"[^A-Za-z0-9_.-]+", "-", "_".join(parts)).strip("-_.")[:120]
    if made == "_".join(parts):
        return made
    return f"{made or 'run'}_{hashlib.sha256(chr(0).join(parts).encode('utf-8', 'replace')).hexdigest()[:8]}"


def files_below(folder: Path, prefix: str = "") -> list[tuple[str, Path]]:
    """The files of a folder by their names below it. A link that leads out of it is somebody else's file."""
    if not folder.is_dir():
        return []
    top = folder.resolve()
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.resolve().is_relative_to(top):
            found.append((prefix + path.relative_to(folder).as_posix(), path))
    return found
