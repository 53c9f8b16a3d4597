"""Exports metrics of runs as TensorBoard event files. TensorBoard does not have to be installed."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from runyard.errors import UserErrorException
from runyard.posix import atomic_write
from runyard.wire.event_records import BYTES, FIXED32, FIXED64, VARINT, field, record
from runyard.wire.points import NO_STEP, decode_points

if TYPE_CHECKING:
    from runyard.sdk.core.experiment import Experiment
    from runyard.sdk.run.run import Run

_DOUBLE, _FLOAT = struct.Struct("<d"), struct.Struct("<f")
_PAGE = 1000


def export_to_tensorboard(
    run_data: Union[Run, Experiment, Iterable[Run]], logsdir: str, logger: Any = None, recursive: bool = True
) -> None:
    """Write scalars, histograms and texts to ``<logsdir>/<run id>/events.out.tfevents.…``.

    A second export of the same run replaces the file of the first.

    Args:
        run_data: A run, several runs, or an experiment.
        logsdir: Folder to write to.
        logger: Logger for the number of exported values.
        recursive: Include child runs.
    """
    exported: set[str] = set()
    for run in _runs(run_data, recursive):
        if run.id not in exported:
            exported.add(run.id)
            count = _export(run, Path(logsdir) / run.id)
            if logger is not None:
                logger.info("run %s: %d values exported", run.id, count)


def _runs(run_data: Any, recursive: bool) -> Iterator[Run]:
    if hasattr(run_data, "get_runs"):
        yield from _with_children(run_data.get_runs(), recursive)
        return
    runs = [run_data] if hasattr(run_data, "get_metrics") else run_data
    if not isinstance(runs, Iterable) or isinstance(runs, (str, bytes)):
        kind = type(run_data).__name__
        raise UserErrorException(f"run_data must be a run, several runs, or an experiment, got a {kind}")
    for run in runs:
        if not hasattr(run, "get_metrics"):
            raise UserErrorException(f"run_data must contain runs, got a {type(run).__name__}")
        yield from _with_children([run], recursive)


def _with_children(runs: Iterable[Run], recursive: bool) -> Iterator[Run]:
    for run in runs:
        yield run
        if recursive:
            yield from run.get_children(recursive=True)


def _export(run: Run, folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    draft = atomic_write.draft_path(folder / "export")  # TensorBoard would read a name with "tfevents" in it
    count = 0
    try:
        with open(draft, "wb") as file:
            file.write(record(_event(time.time(), 0, field(3, BYTES, b"brain.Event:2"))))
            for timestamp, step, value in _values(run):
                file.write(record(_event(timestamp, step, field(5, BYTES, field(1, BYTES, value)))))
                count += 1
        for old_file in folder.glob("events.out.tfevents.*.runyard"):  # TensorBoard would show the values of both
            old_file.unlink()
        draft.replace(folder / f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.runyard")
    finally:
        draft.unlink(missing_ok=True)
    return count


def _values(run: Run) -> Iterator[tuple[float, int, bytes]]:
    for series in run._connection.get(f"/api/runs/{run.id}/series"):
        name, kind = series["name"], series["kind"]
        tag = field(1, BYTES, name.encode())
        if kind == "scalar":
            points = decode_points(run._connection.read(f"/api/runs/{run.id}/metrics/{name}"))
            for index, (step, timestamp, value) in enumerate(zip(points.steps, points.times, points.values)):
                yield timestamp, index if step == NO_STEP else step, tag + field(2, FIXED32, _as_float(value))
        elif kind in ("histogram", "text"):
            for index, entry in enumerate(_entries(run, name)):
                step = index if entry["step"] is None else entry["step"]
                content = _histogram(entry["value"]) if kind == "histogram" else _text(entry["value"])
                yield entry["time"], step, tag + content


def _entries(run: Run, name: str) -> Iterator[dict[str, Any]]:
    after = 0
    while True:
        page = run._connection.get(f"/api/runs/{run.id}/values/{name}", after=after, limit=_PAGE)
        yield from page["values"]
        if len(page["values"]) < _PAGE:
            return
        after = page["next"]


def _event(timestamp: float, step: int, content: bytes) -> bytes:
    return field(1, FIXED64, _DOUBLE.pack(timestamp)) + field(2, VARINT, step) + content


def _as_float(value: float) -> bytes:
    try:
        return _FLOAT.pack(value)
    except OverflowError:  # event files have 32 bits for a scalar
        return _FLOAT.pack(float("inf") if value > 0 else float("-inf"))


def _histogram(data: dict[str, list[float]]) -> bytes:
    edges, counts = data["bin_edges"], data["bin_counts"]
    middles = [(low + high) / 2 for low, high in zip(edges, edges[1:])]
    statistics = (
        edges[0],
        edges[-1],
        sum(counts),
        sum(middle * count for middle, count in zip(middles, counts)),
        sum(middle * middle * count for middle, count in zip(middles, counts)),
    )
    packed = b"".join(field(number, FIXED64, _DOUBLE.pack(value)) for number, value in enumerate(statistics, start=1))
    # buckets are stored by their upper limits; an empty bucket before the first preserves the lowest edge
    packed += field(6, BYTES, b"".join(_DOUBLE.pack(edge) for edge in edges))
    packed += field(7, BYTES, b"".join(_DOUBLE.pack(count) for count in [0.0, *counts]))
    return field(5, BYTES, packed)


def _text(text: str) -> bytes:
    plugin = field(9, BYTES, field(1, BYTES, field(1, BYTES, b"text")))
    tensor = (
        field(1, VARINT, 7) + field(2, BYTES, field(2, BYTES, field(1, VARINT, 1))) + field(8, BYTES, text.encode())
    )
    return plugin + field(8, BYTES, tensor)
