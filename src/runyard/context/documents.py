"""What is logged whole and shown as the picture it means: the SDK v1's documents, histograms, texts.

Everything is checked here, in the script that logs it: a matrix that cannot be drawn is an error at the line that
made it, not an empty picture afterwards.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from runyard.context import format as layout
from runyard.context.values import plain_value
from runyard.errors import UserErrorException

CONFUSION_MATRIX, ACCURACY_TABLE = "confusion_matrix", "accuracy_table"
RESIDUALS, PREDICTIONS = "residuals", "predictions"
HISTOGRAM, TEXT = "histogram", "text"

KIND_OF_RECORD = {
    layout.NOTE: TEXT,
    layout.CONFUSION_MATRIX: CONFUSION_MATRIX,
    layout.ACCURACY_TABLE: ACCURACY_TABLE,
    layout.RESIDUALS: RESIDUALS,
    layout.PREDICTIONS: PREDICTIONS,
    layout.HISTOGRAM: HISTOGRAM,
}
RECORD_OF_KIND = {kind: number for number, kind in KIND_OF_RECORD.items()}
SCHEMAS = (CONFUSION_MATRIX, ACCURACY_TABLE, RESIDUALS, PREDICTIONS)
_MOST_TEXT = 4 << 20
_MOST_BINS = 10_000


def document(kind: str, name: str, value: Any) -> dict[str, Any]:
    """The checked data of a document of the SDK v1, given whole, as JSON text, or its ``data`` alone."""
    if isinstance(value, (str, bytes)):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise UserErrorException(f"{kind} {name!r} is not JSON: {error}") from None
    value = _jsonable(kind, name, value)
    if not isinstance(value, dict):
        raise UserErrorException(f"{kind} {name!r} is a dict or its JSON, not a {type(value).__name__}")
    if "schema_type" in value or "data" in value:
        if value.get("schema_type", kind) != kind:
            raise UserErrorException(f"{kind} {name!r}: its schema_type is {value['schema_type']!r}, not {kind!r}")
        version = str(value.get("schema_version", "v1"))
        if version.lstrip("v").partition(".")[0] != "1":
            raise UserErrorException(f"{kind} {name!r}: schema_version {version!r} is not known", hint="it is 'v1'")
        value = value.get("data")
        if not isinstance(value, dict):
            raise UserErrorException(f"{kind} {name!r}: its 'data' is a dict, not {_shown(value)}")
    missing = [key for key in _KEYS[kind] if key not in value]
    if missing:
        raise UserErrorException(
            f"{kind} {name!r} lacks {', '.join(map(repr, missing))}", hint=f"it has {', '.join(_KEYS[kind])}"
        )
    _CHECKS[kind](_Told(kind, name), value)
    return value


def as_logged(kind: str, data: dict[str, Any]) -> dict[str, Any]:
    """The document as v1 writes it, around its data."""
    return {"schema_type": kind, "schema_version": "v1", "data": data} if kind in SCHEMAS else data


def histogram(name: str, values: Any, bins: Any, bin_edges: Any, bin_counts: Any) -> dict[str, Any]:
    """Of values, or of bins that were counted elsewhere. NaN and infinities are in no bin."""
    told = _Told(HISTOGRAM, name)
    if (values is None) == (bin_edges is None or bin_counts is None):
        raise told.error("is made of values, or of bin_edges and bin_counts", "give one of the two")
    if values is None:
        data = _jsonable(HISTOGRAM, name, {"bin_edges": bin_edges, "bin_counts": bin_counts})
        _check_bins(told, data)
        return dict(data)
    if isinstance(bins, bool) or not isinstance(bins, int) or not 1 <= bins <= _MOST_BINS:
        raise told.error(f"has 1 to {_MOST_BINS:,} bins, not {_shown(bins)}")
    return _counted(told, values, bins)


def text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise UserErrorException(f"text {name!r} is a str, not a {type(value).__name__}", hint="log_text(name, str(x))")
    if len(value) > _MOST_TEXT:
        raise UserErrorException(
            f"text {name!r} has {len(value):,} characters, more than {_MOST_TEXT:,}", hint="upload it as a file"
        )
    return value


class _Told:
    """Which document an error is about."""

    def __init__(self, kind: str, name: str) -> None:
        self.kind, self.name = kind, name

    def error(self, what: str, hint: str = "") -> UserErrorException:
        return UserErrorException(f"{self.kind} {self.name!r} {what}", hint=hint)

    def numbers(self, label: str, values: Any, count: int | None = None) -> list[Any]:
        if not isinstance(values, list) or not all(_is_number(value) for value in values):
            raise self.error(f"needs {label} as a list of numbers, not {_shown(values)}")
        if count is not None and len(values) != count:
            raise self.error(f"needs {count} {label}, but has {len(values)}")
        return values

    def labels(self, data: dict[str, Any]) -> list[Any]:
        labels = data["class_labels"]
        if not isinstance(labels, list) or not labels or not all(isinstance(x, (str, int, float)) for x in labels):
            raise self.error(f"needs class_labels as a list of texts, not {_shown(labels)}")
        data["class_labels"] = [str(label) for label in labels]
        if len(set(data["class_labels"])) < len(labels):
            raise self.error(f"has a class label twice: {_shown(labels)}")
        return labels


def _check_confusion_matrix(told: _Told, data: dict[str, Any]) -> None:
    labels, matrix = told.labels(data), data["matrix"]
    if not isinstance(matrix, list) or len(matrix) != len(labels):
        rows = len(matrix) if isinstance(matrix, list) else 0
        raise told.error(f"has {len(labels)} class_labels, but its matrix has {rows} rows")
    for row in matrix:
        told.numbers("numbers in each row of its matrix", row, len(labels))


def _check_accuracy_table(told: _Told, data: dict[str, Any]) -> None:
    labels = told.labels(data)
    for what in ("probability", "percentile"):
        thresholds = told.numbers(f"{what}_thresholds", data[f"{what}_thresholds"])
        tables = data[f"{what}_tables"]
        if not isinstance(tables, list) or len(tables) != len(labels):
            raise told.error(f"needs one of the {what}_tables for each of its {len(labels)} class_labels")
        for table in tables:
            if not isinstance(table, list) or len(table) != len(thresholds):
                raise told.error(f"needs a row for each of its {len(thresholds)} {what}_thresholds in each table")
            for row in table:
                told.numbers(f"numbers (TP, FP, TN, FN) in each row of its {what}_tables", row, 4)


def _check_bins(told: _Told, data: dict[str, Any]) -> None:
    edges = told.numbers("bin_edges", data["bin_edges"])
    if len(edges) < 2 or any(not low <= high for low, high in zip(edges, edges[1:])):
        raise told.error(f"needs two bin_edges or more, ascending, not {_shown(edges)}")
    told.numbers("bin_counts (one less than bin_edges)", data["bin_counts"], len(edges) - 1)


def _check_predictions(told: _Told, data: dict[str, Any]) -> None:
    _check_bins(told, data)
    for key in ("bin_averages", "bin_errors"):
        told.numbers(key, data[key], len(data["bin_counts"]))


_KEYS = {
    CONFUSION_MATRIX: ("class_labels", "matrix"),
    ACCURACY_TABLE: (
        "class_labels",
        "probability_tables",
        "probability_thresholds",
        "percentile_tables",
        "percentile_thresholds",
    ),
    RESIDUALS: ("bin_edges", "bin_counts"),
    PREDICTIONS: ("bin_averages", "bin_errors", "bin_counts", "bin_edges"),
}
_CHECKS = {
    CONFUSION_MATRIX: _check_confusion_matrix,
    ACCURACY_TABLE: _check_accuracy_table,
    RESIDUALS: _check_bins,
    PREDICTIONS: _check_predictions,
}


def _counted(told: _Told, values: Any, bins: int) -> dict[str, Any]:
    if hasattr(values, "detach"):  # a tensor: on a GPU, or part of a graph
        values = values.detach().cpu()
        values = values.float().numpy() if "numpy" in sys.modules else values.flatten().tolist()
    numpy = sys.modules.get("numpy")  # whoever has an array has it loaded; nobody else pays for it
    if numpy is not None and isinstance(values, numpy.ndarray):
        if values.dtype.kind not in "fiub":
            raise told.error(f"is made of numbers, not of an array of {values.dtype}")
        finite = values[numpy.isfinite(values)].astype(float)
        counts, edges = numpy.histogram(finite, bins) if finite.size else ([0], [0.0, 1.0])
        return {"bin_edges": [float(edge) for edge in edges], "bin_counts": [int(count) for count in counts]}
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise told.error(f"is made of many numbers, not of {_shown(values)}")
    plain = [number for number in _numbers(told, values) if math.isfinite(number)]
    if not plain:
        return {"bin_edges": [0.0, 1.0], "bin_counts": [0]}
    low, high = min(plain), max(plain)
    if low == high:
        low, high = low - 0.5, high + 0.5
    width = high / bins - low / bins  # a difference of huge numbers may be infinite, this one is not
    counts = [0] * bins
    for number in plain:
        counts[max(0, min(int(number / width - low / width), bins - 1))] += 1
    return {"bin_edges": [low + width * index for index in range(bins)] + [high], "bin_counts": counts}


def _numbers(told: _Told, values: Iterable[Any]) -> Iterable[float]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _numbers(told, value)
            continue
        known, plain = plain_value(value)
        if not known or not isinstance(plain, (int, float)):
            raise told.error(f"is made of numbers, but among its values is {_shown(value)}")
        yield float(plain)


def _jsonable(kind: str, name: str, value: Any) -> Any:
    """Plain values all the way down; arrays, series and tensors as lists."""
    if isinstance(value, Mapping):
        return {str(key): _jsonable(kind, name, item) for key, item in value.items()}
    if isinstance(value, (list, tuple, range)):
        return [_jsonable(kind, name, item) for item in value]
    known, plain = plain_value(value)
    if known:
        return plain
    if hasattr(value, "tolist"):
        return _jsonable(kind, name, value.tolist())
    raise UserErrorException(f"{kind} {name!r} holds a {type(value).__name__}, which is neither number, text nor list")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    said = repr(value)
    return said if len(said) <= 60 else f"{said[:57]}..."
