"""Reads TensorBoard event files: each folder that contains some is a run."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from runyard.context.documents import SCALAR
from runyard.errors import UserErrorException
from runyard.event_files.checksums import complete_records
from runyard.event_files.summaries import SummaryValue, read_event
from runyard.exchange.foreign_run import COMPLETED, ForeignRun, MetricSeries, add_point, new_series, stable_id
from runyard.wire.event_records import is_event_file


def runs(root: Path) -> Iterator[ForeignRun]:
    """Yield the runs. The event files become files of the run, so that histograms and images are not lost."""
    for folder in sorted({path.parent for path in root.rglob("*") if is_event_file(path.name) and path.is_file()}):
        files = sorted(path for path in folder.iterdir() if is_event_file(path.name) and path.is_file())
        times = [value.time for path in files for value in _read_values(path)]
        if not times:
            continue
        name = folder.relative_to(root).as_posix() if folder != root else folder.resolve().name
        experiment = root.resolve().name
        yield ForeignRun(
            run_id=stable_id(experiment, name, str(round(min(times) * 1e6))),
            experiment=experiment,
            name=name,
            status=COMPLETED,
            created_at=min(times),
            ended_at=max(times),
            source="tensorboard",
            series=lambda files=files: _read_series(files),  # type: ignore[misc]
            files=[(f"logs/{path.name}", path) for path in files],
        )


def _read_series(files: list[Path]) -> Iterator[MetricSeries]:
    """Read all files in order: a resumed run has several, whose names start with the time."""
    by_tag: dict[str, MetricSeries] = {}
    for path in files:
        for value in _read_values(path):
            if value.kind == SCALAR:
                series = by_tag.setdefault(value.tag, new_series(value.tag))
                add_point(series, value.step, value.time, float(value.value))
    yield from by_tag.values()


def _read_values(path: Path) -> Iterator[SummaryValue]:
    data = path.read_bytes()
    spans, damaged_at = complete_records(data)
    if damaged_at is not None:
        raise UserErrorException(
            f"{path} is damaged at byte {damaged_at:,}: checksum mismatch", hint="move it away and import the rest"
        )
    for start, end in spans:
        with suppress(ValueError, ArithmeticError, struct.error):  # events of unknown types
            yield from read_event(data[start:end])
