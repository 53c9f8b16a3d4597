"""A run of another tracking system: the result of all readers and the input of the import."""

from __future__ import annotations

import hashlib
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Optional

from runyard.wire.exchange import ImportedDataset, ImportedMetric, ImportModel

COMPLETED, FAILED, CANCELED = "Completed", "Failed", "Canceled"
NOT_ENDED = "NotEnded"  # it may continue and be imported again
RUNNING = "Running"  # it is being watched


class MetricSeries(NamedTuple):
    """The points of one metric in the order of logging."""

    name: str
    steps: array[int]
    times: array[float]  # seconds
    values: array[float]
    start: int = 0  # index of the first point in the metric


@dataclass(frozen=True)
class ForeignModel:
    """A logged model of MLflow. The files of a model that a run has logged are also among the files of that run."""

    record: ImportModel
    files: Sequence[tuple[str, Path]]


@dataclass(frozen=True)
class ForeignRun:
    run_id: str
    experiment: str  # any text
    name: str
    status: str
    created_at: float
    ended_at: Optional[float]
    source: str  # "mlflow", "tensorboard", "wandb"
    series: Callable[[], Iterator[MetricSeries]] = lambda: iter(())
    parent_id: Optional[str] = None
    user: str = ""
    message: str = ""  # reason of the failure
    tags: dict[str, str] = field(default_factory=dict)
    params: dict[str, str] = field(default_factory=dict)
    files: Sequence[tuple[str, Path]] = ()
    datasets: Sequence[ImportedDataset] = ()
    model_outputs: dict[str, int] = field(default_factory=dict)  # steps by model id
    model_inputs: Sequence[str] = ()  # ids of models
    missing_files: Sequence[str] = ()  # descriptions of files that the run had, and that no longer exist


def new_series(name: str, start: int = 0) -> MetricSeries:
    return MetricSeries(name, array("q"), array("d"), array("d"), start)


def add_point(series: MetricSeries, step: int, time: float, value: float) -> None:
    series.steps.append(step)
    series.times.append(time)
    series.values.append(value)


def newest_metrics(metrics: Iterable[ImportedMetric]) -> list[ImportedMetric]:
    """Return the last value of each metric and dataset: that with the highest step, then the latest."""
    newest: dict[tuple[str, str, str], ImportedMetric] = {}
    for metric in metrics:
        key = (metric.name, metric.dataset_name, metric.dataset_digest)
        other = newest.setdefault(key, metric)
        if (metric.step, metric.time) >= (other.step, other.time):
            newest[key] = metric
    return list(newest.values())


def stable_id(*parts: str) -> str:
    """Return an id that depends only on the parts; it is readable if the parts are."""
    text = re.sub(r"[^A-Za-z0-9_.-]+", "-", "_".join(parts)).strip("-_.")[:120]
    if text == "_".join(parts):
        return text
    return f"{text or 'run'}_{hashlib.sha256(chr(0).join(parts).encode('utf-8', 'replace')).hexdigest()[:8]}"


def list_files(folder: Path, prefix: str = "") -> list[tuple[str, Path]]:
    """Return the files below a folder with their relative names, without links that lead out of it."""
    root = folder.resolve()
    return [
        (prefix + path.relative_to(folder).as_posix(), path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.resolve().is_relative_to(root)
    ]
