"""Documents of SDK v1 (confusion matrix, accuracy table, ...), histograms and texts, each logged as one value.

Everything is validated in the script that logs it: a matrix that cannot be drawn is an error at the line that logged
it, not an empty chart afterwards.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from runyard.context import format as layout
from runyard.context.values import shortened_repr, to_plain
from runyard.errors import UserErrorException

CONFUSION_MATRIX, ACCURACY_TABLE = "confusion_matrix", "accuracy_table"
RESIDUALS, PREDICTIONS = "residuals", "predictions"
SCALAR, HISTOGRAM, TEXT = "scalar", "histogram", "text"

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
_MAX_CHARACTERS = 4 << 20
_MAX_BINS = 10_000


def validate_document(kind: str, name: str, value: Any) -> dict[str, Any]:
    """The ``data`` of a document of SDK v1, which may be passed as a dict, as JSON text, or as the ``data`` alone."""
    if isinstance(value, (str, bytes)):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise UserErrorException(f"{kind} {name!r} is not JSON: {error}") from None
    value = _to_jsonable(kind, name, value)
    if not isinstance(value, dict):
        raise UserErrorException(f"{kind} {name!r}: expected a dict or its JSON, got a {type(value).__name__}")
    if "schema_type" in value or "data" in value:
        if value.get("schema_type", kind) != kind:
            raise UserErrorException(f"{kind} {name!r}: expected schema_type {kind!r}, got {value['schema_type']!r}")
        version = str(value.get("schema_version", "v1"))
        if version.lstrip("v").partition(".")[0] != "1":
            raise UserErrorException(f"{kind} {name!r}: expected schema_version 'v1', got {version!r}")
        value = value.get("data")
        if not isinstance(value, dict):
            raise UserErrorException(f"{kind} {name!r}: expected a dict as 'data', got {shortened_repr(value)}")
    missing = [key for key in _KEYS[kind] if key not in value]
    if missing:
        raise UserErrorException(
            f"{kind} {name!r} lacks {', '.join(map(repr, missing))}", hint=f"required: {', '.join(_KEYS[kind])}"
        )
    _CHECKS[kind](_Checker(kind, name), value)
    return value


def to_v1_document(kind: str, data: dict[str, Any]) -> dict[str, Any]:
    """The complete document in the format of SDK v1."""
    return {"schema_type": kind, "schema_version": "v1", "data": data} if kind in SCHEMAS else data


def make_histogram(name: str, values: Any, bins: Any, bin_edges: Any, bin_counts: Any) -> dict[str, Any]:
    """A histogram of ``values``, or of existing bins. NaN and infinities are not counted."""
    checker = _Checker(HISTOGRAM, name)
    if (values is None) == (bin_edges is None or bin_counts is None):
        raise checker.error("needs either values, or bin_edges and bin_counts")
    if values is None:
        data = _to_jsonable(HISTOGRAM, name, {"bin_edges": bin_edges, "bin_counts": bin_counts})
        _check_bins(checker, data)
        return dict(data)
    if isinstance(bins, bool) or not isinstance(bins, int) or not 1 <= bins <= _MAX_BINS:
        raise checker.error(f"must have between 1 and {_MAX_BINS:,} bins, got {shortened_repr(bins)}")
    return _count_values(checker, values, bins)


def validate_text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise UserErrorException(
            f"text {name!r}: expected a str, got a {type(value).__name__}", hint="log_text(name, str(x))"
        )
    if len(value) > _MAX_CHARACTERS:
        raise UserErrorException(
            f"text {name!r} has {len(value):,} characters; the limit is {_MAX_CHARACTERS:,}", hint="upload it as a file"
        )
    return value


class _Checker:
    """Raises errors that name the document."""

    def __init__(self, kind: str, name: str) -> None:
        self.kind, self.name = kind, name

    def error(self, what: str, hint: str = "") -> UserErrorException:
        return UserErrorException(f"{self.kind} {self.name!r} {what}", hint=hint)

    def numbers(self, label: str, values: Any, count: int | None = None) -> list[Any]:
        if not isinstance(values, list) or not all(_is_number(value) for value in values):
            raise self.error(f"needs {label} as a list of numbers, got {shortened_repr(values)}")
        if count is not None and len(values) != count:
            raise self.error(f"needs {count} {label}, got {len(values)}")
        return values

    def labels(self, data: dict[str, Any]) -> list[Any]:
        labels = data["class_labels"]
        if not isinstance(labels, list) or not labels or not all(isinstance(x, (str, int, float)) for x in labels):
            raise self.error(f"needs class_labels as a list of strings, got {shortened_repr(labels)}")
        data["class_labels"] = [str(label) for label in labels]
        if len(set(data["class_labels"])) < len(labels):
            raise self.error(f"has a duplicate class label: {shortened_repr(labels)}")
        return labels


def _check_confusion_matrix(checker: _Checker, data: dict[str, Any]) -> None:
    labels, matrix = checker.labels(data), data["matrix"]
    if not isinstance(matrix, list) or len(matrix) != len(labels):
        rows = len(matrix) if isinstance(matrix, list) else 0
        raise checker.error(f"has {len(labels)} class_labels, but its matrix has {rows} rows")
    for row in matrix:
        checker.numbers("numbers in each row of its matrix", row, len(labels))


def _check_accuracy_table(checker: _Checker, data: dict[str, Any]) -> None:
    labels = checker.labels(data)
    for name in ("probability", "percentile"):
        thresholds = checker.numbers(f"{name}_thresholds", data[f"{name}_thresholds"])
        tables = data[f"{name}_tables"]
        if not isinstance(tables, list) or len(tables) != len(labels):
            raise checker.error(f"needs one of the {name}_tables for each of its {len(labels)} class_labels")
        for table in tables:
            if not isinstance(table, list) or len(table) != len(thresholds):
                raise checker.error(f"needs a row for each of its {len(thresholds)} {name}_thresholds in each table")
            for row in table:
                checker.numbers(f"numbers (TP, FP, TN, FN) in each row of its {name}_tables", row, 4)


def _check_bins(checker: _Checker, data: dict[str, Any]) -> None:
    edges = checker.numbers("bin_edges", data["bin_edges"])
    if len(edges) < 2 or any(not low <= high for low, high in zip(edges, edges[1:])):
        raise checker.error(f"needs at least two bin_edges in ascending order, got {shortened_repr(edges)}")
    checker.numbers("bin_counts (one fewer than bin_edges)", data["bin_counts"], len(edges) - 1)


def _check_predictions(checker: _Checker, data: dict[str, Any]) -> None:
    _check_bins(checker, data)
    for key in ("bin_averages", "bin_errors"):
        checker.numbers(key, data[key], len(data["bin_counts"]))


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


def _count_values(checker: _Checker, values: Any, bins: int) -> dict[str, Any]:
    if hasattr(values, "detach"):  # a tensor, possibly on a GPU or part of a graph
        values = values.detach().cpu()
        values = values.float().numpy() if "numpy" in sys.modules else values.flatten().tolist()
    numpy = sys.modules.get("numpy")  # a script that has an array has imported it; others must not pay for it
    if numpy is not None and isinstance(values, numpy.ndarray):
        if values.dtype.kind not in "fiub":
            raise checker.error(f"needs numbers, got an array of {values.dtype}")
        finite = values[numpy.isfinite(values)].astype(float)
        counts, edges = numpy.histogram(finite, bins) if finite.size else ([0], [0.0, 1.0])
        return {"bin_edges": [float(edge) for edge in edges], "bin_counts": [int(count) for count in counts]}
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise checker.error(f"needs a list of numbers, got {shortened_repr(values)}")
    plain = [number for number in _numbers(checker, values) if math.isfinite(number)]
    if not plain:
        return {"bin_edges": [0.0, 1.0], "bin_counts": [0]}
    low, high = min(plain), max(plain)
    if low == high:
        low, high = low - 0.5, high + 0.5
    width = high / bins - low / bins  # (high - low) / bins could overflow
    counts = [0] * bins
    for number in plain:
        counts[max(0, min(int(number / width - low / width), bins - 1))] += 1
    return {"bin_edges": [low + width * index for index in range(bins)] + [high], "bin_counts": counts}


def _numbers(checker: _Checker, values: Iterable[Any]) -> Iterable[float]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _numbers(checker, value)
            continue
        is_plain, plain = to_plain(value)
        if not is_plain or not isinstance(plain, (int, float)):
            raise checker.error(f"needs numbers, got the value {shortened_repr(value)}")
        yield float(plain)


def _to_jsonable(kind: str, name: str, value: Any) -> Any:
    """Convert nested containers, arrays, series and tensors to dicts and lists of plain values."""
    if isinstance(value, Mapping):
        return {str(key): _to_jsonable(kind, name, item) for key, item in value.items()}
    if isinstance(value, (list, tuple, range)):
        return [_to_jsonable(kind, name, item) for item in value]
    is_plain, plain = to_plain(value)
    if is_plain:
        return plain
    if hasattr(value, "tolist"):
        return _to_jsonable(kind, name, value.tolist())
    raise UserErrorException(f"{kind} {name!r} contains a {type(value).__name__}; expected numbers, strings and lists")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
