"""Documents, histograms and texts are validated by the call that logs them."""

from __future__ import annotations

import json
import math
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runyard.context import format
from runyard.errors import UserErrorException
from runyard.sdk.run.metric_logging import MetricLogging
from runyard.sdk.run.offline_run import OfflineRun
from runyard.tracking.journal_reader import JournalReader, Position, stems

MATRIX = {"class_labels": ["cat", "dog"], "matrix": [[9, 1], [2, 8]]}
TABLE = {
    "class_labels": ["0"],
    "probability_tables": [[[5, 5, 0, 0], [4, 1, 4, 1]]],
    "probability_thresholds": [0.0, 0.5],
    "percentile_tables": [[[5, 5, 0, 0]]],
    "percentile_thresholds": [0.0],
}
RESIDUALS = {"bin_edges": [0, 1, 2], "bin_counts": [0.5, 3]}
PREDICTIONS = {"bin_averages": [0.2, 0.7], "bin_errors": [0.01, 0.02], "bin_counts": [5, 6], "bin_edges": [0, 0.5, 1]}
GOOD = {"confusion_matrix": MATRIX, "accuracy_table": TABLE, "residuals": RESIDUALS, "predictions": PREDICTIONS}


@pytest.fixture
def run(tmp_path: Path) -> MetricLogging:
    return MetricLogging(tmp_path, rank=0)


def stored(folder: Path) -> list[Any]:
    """The documents in the journal."""
    (side,) = (folder / "journal").glob(f"*{format.SIDE_SUFFIX}")
    return [json.loads(line) for line in side.read_bytes().splitlines()]


@pytest.mark.parametrize("kind", GOOD)
def test_a_document_may_be_a_dict_json_text_or_its_data(run: MetricLogging, tmp_path: Path, kind: str) -> None:
    log = getattr(run, f"log_{kind}")
    document = {"schema_type": kind, "schema_version": "v1", "data": GOOD[kind]}
    for value in (document, json.dumps(document), GOOD[kind]):
        log("name", value)
    assert stored(tmp_path) == [GOOD[kind]] * 3


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        ("confusion_matrix", "{nonsense", "is not JSON"),
        ("confusion_matrix", [1, 2], "expected a dict or its JSON, got a list"),
        ("confusion_matrix", {"schema_type": "residuals", "data": MATRIX}, "got 'residuals'"),
        ("confusion_matrix", {"schema_type": "confusion_matrix", "schema_version": "v2", "data": MATRIX}, "'v2'"),
        ("confusion_matrix", {"schema_type": "confusion_matrix"}, "expected a dict as 'data', got None"),
        ("confusion_matrix", {"class_labels": ["a"]}, "lacks 'matrix'"),
        ("confusion_matrix", {**MATRIX, "matrix": [[1, 2]]}, "2 class_labels, but its matrix has 1 rows"),
        ("confusion_matrix", {**MATRIX, "matrix": [[1, 2], [3]]}, "in each row of its matrix, got 1"),
        ("confusion_matrix", {**MATRIX, "matrix": [[1, 2], [3, "x"]]}, "as a list of numbers"),
        ("confusion_matrix", {**MATRIX, "class_labels": ["a", "a"]}, "has a duplicate class label"),
        ("confusion_matrix", {**MATRIX, "matrix": object()}, "contains a object"),
        ("accuracy_table", {**TABLE, "probability_tables": []}, "probability_tables for each of its 1 class_labels"),
        ("accuracy_table", {**TABLE, "percentile_tables": [[]]}, "a row for each of its 1 percentile_thresholds"),
        ("accuracy_table", {**TABLE, "percentile_tables": [[[1, 2, 3]]]}, "TP, FP, TN, FN"),
        ("residuals", {**RESIDUALS, "bin_edges": [0]}, "at least two bin_edges in ascending order"),
        ("residuals", {**RESIDUALS, "bin_edges": [0, 2, 1]}, "ascending"),
        ("residuals", {**RESIDUALS, "bin_counts": [1]}, "needs 2 bin_counts"),
        ("predictions", {**PREDICTIONS, "bin_errors": [1, 2, 3]}, "needs 2 bin_errors, got 3"),
    ],
)
def test_an_invalid_document_is_refused_with_the_reason(
    run: MetricLogging, tmp_path: Path, kind: str, value: Any, message: str
) -> None:
    for logger in (run, OfflineRun()):
        with pytest.raises(UserErrorException, match=f"{kind} 'name'") as raised:
            getattr(logger, f"log_{kind}")("name", value)
        assert message in raised.value.message
    assert list(tmp_path.rglob("*.seg")) == []  # nothing was written


def test_arrays_are_accepted_as_lists(run: MetricLogging, tmp_path: Path) -> None:
    run.log_confusion_matrix("cm", {"class_labels": np.array(["a", "b"]), "matrix": np.eye(2, dtype=np.int64)})
    run.log_residuals("r", {"bin_edges": np.linspace(0, 1, 3), "bin_counts": (np.float32(1), 2)})
    assert stored(tmp_path) == [
        {"class_labels": ["a", "b"], "matrix": [[1, 0], [0, 1]]},
        {"bin_edges": [0.0, 0.5, 1.0], "bin_counts": [1.0, 2]},
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "needs either values, or bin_edges"),
        ({"values": [1], "bin_edges": [0, 1], "bin_counts": [1]}, "needs either values, or bin_edges"),
        ({"values": [1], "bins": 0}, "between 1 and 10,000 bins"),
        ({"values": "text"}, "needs a list of numbers"),
        ({"values": 5}, "needs a list of numbers"),
        ({"values": [1, "x"]}, "got the value 'x'"),
        ({"values": np.array(["x"])}, "got an array of"),
        ({"bin_edges": [0, 1, 2], "bin_counts": [1]}, "needs 2 bin_counts"),
    ],
)
def test_invalid_histogram_arguments_are_refused(run: MetricLogging, arguments: Any, message: str) -> None:
    with pytest.raises(UserErrorException) as raised:
        run.log_histogram("weights", **arguments)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    "values",
    [[1, 2, 3], range(10), (x / 7 for x in range(50)), [[1.0, 2.0], [3.0]], np.arange(12.0).reshape(3, 4)],
)
def test_a_histogram_accepts_any_iterable_of_numbers(run: MetricLogging, tmp_path: Path, values: Any) -> None:
    run.log_histogram("weights", values, bins=2)
    (histogram,) = stored(tmp_path)
    assert len(histogram["bin_edges"]) == 3
    assert sum(histogram["bin_counts"]) in (3, 10, 12, 50)


def test_lists_and_arrays_give_the_same_histogram(capsys: pytest.CaptureFixture[str]) -> None:
    values = [math.nan, math.inf, 0.0, 0.1, 0.5, 0.9, 1.0, 1.0]
    for numbers in (values, np.array(values)):
        OfflineRun().log_histogram("weights", numbers, bins=4)
        assert "'bin_edges': [0.0, 0.25, 0.5, 0.75, 1.0], 'bin_counts': [2, 0, 1, 3]" in capsys.readouterr().out


@pytest.mark.parametrize("values", [[], [math.nan], np.array([]), [3, 3, 3], [-1e308, 1e308]])
def test_a_histogram_of_no_or_extreme_values_is_accepted(run: MetricLogging, tmp_path: Path, values: Any) -> None:
    run.log_histogram("weights", values)
    (histogram,) = stored(tmp_path)
    assert sum(histogram["bin_counts"]) == sum(math.isfinite(value) for value in values)


def test_log_text_accepts_only_a_str_below_the_limit(run: MetricLogging) -> None:
    run.log_text("sample", "Once upon a time …")
    with pytest.raises(UserErrorException, match="expected a str, got a int"):
        run.log_text("sample", 5)  # type: ignore[arg-type]
    with pytest.raises(UserErrorException, match="limit"):
        run.log_text("sample", "x" * (5 << 20))


@pytest.mark.parametrize("moment", [1_700_000_000, 1.5, datetime(2026, 1, 1, tzinfo=timezone.utc), np.float64(3)])
def test_a_timestamp_is_seconds_or_a_datetime(run: MetricLogging, tmp_path: Path, moment: Any) -> None:
    run.log("loss", 0.5, timestamp=moment)
    (stem,) = stems(tmp_path / "journal")
    record = JournalReader(tmp_path / "journal", stem).read(Position(), limit=10).records[0]
    assert record["time"] == (moment.timestamp() if isinstance(moment, datetime) else moment)


@pytest.mark.parametrize("moment", ["now", True, math.nan, math.inf, [1], 10**40])
def test_other_timestamps_are_refused(run: MetricLogging, moment: Any) -> None:
    with pytest.raises(UserErrorException, match="seconds since 1970"):
        run.log("loss", 0.5, timestamp=moment)


def test_milliseconds_are_recognized(run: MetricLogging) -> None:
    with pytest.raises(UserErrorException) as raised:
        run.log("loss", 0.5, timestamp=1_700_000_000_000)
    assert "pass 1700000000.0" in raised.value.hint
