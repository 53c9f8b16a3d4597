"""TensorBoard's event files: each folder that holds some is a run."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from runyard.errors import UserErrorException
from runyard.exchange.foreign_run import COMPLETED, Curve, FoundRun, add, an_id, new_curve
from runyard.tracking.event_records import complete_records
from runyard.tracking.series import SCALAR
from runyard.tracking.summaries import SummaryValue, read_event
from runyard.wire.event_records import is_event_file


def runs(root: Path) -> Iterator[FoundRun]:
    """The files themselves are kept too, with their histograms and images: nothing of them is lost."""
    for folder in sorted({path.parent for path in root.rglob("*") if is_event_file(path.name) and path.is_file()}):
        files = sorted(path for path in folder.iterdir() if is_event_file(path.name) and path.is_file())
        times = [said.time for path in files for said in _said(path)]
        if not times:
            continue
        name = folder.relative_to(root).as_posix() if folder != root else folder.resolve().name
        experiment = root.resolve().name
        yield FoundRun(
            run_id=an_id(experiment, name, str(round(min(times) * 1e6))),
            experiment=experiment,
            name=name,
            status=COMPLETED,
            created_at=min(times),
            ended_at=max(times),
            source="tensorboard",
            curves=lambda files=files: _curves(files),  # type: ignore[misc]
            files=[(f"logs/{path.name}", path) for path in files],
        )


def _curves(files: list[Path]) -> Iterator[Curve]:
    """A run that was resumed has several files, whose names begin with the time."""
    curves: dict[str, Curve] = {}
    for path in files:
        for said in _said(path):
            if said.kind == SCALAR:
                add(curves.setdefault(said.tag, new_curve(said.tag)), said.step, said.time, float(said.value))
    yield from curves.values()


def _said(path: Path) -> Iterator[SummaryValue]:
    data = path.read_bytes()
    spans, damaged = complete_records(data)
    if damaged is not None:
        raise UserErrorException(
            f"{path} is damaged at byte {damaged:,}: its checksums are not those of its content",
            hint="move it away, and import the rest",
        )
    for begin, end in spans:
        with suppress(ValueError, ArithmeticError, struct.error):  # of a kind that nobody knows
            yield from read_event(data[begin:end])
