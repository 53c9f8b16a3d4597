"""Every kind of logged value is stored and read back unchanged."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from runyard.errors import UserErrorException
from runyard.sdk.run.metric_logging import MetricLogging
from runyard.store import schema
from runyard.store.database import Database
from runyard.tracking.ingest import ingest
from runyard.tracking.metrics import read_last, read_metrics
from runyard.tracking.value_entries import read_entries

MATRIX = {"class_labels": ["cat", "dog"], "matrix": [[9, 1], [2, 8]]}


@pytest.fixture
def run(tmp_path: Path) -> MetricLogging:
    return MetricLogging(tmp_path, rank=0)  # writes its journal to tmp_path / "journal"


def kinds(database: Database) -> dict[str, str]:
    with database.read() as connection:
        rows = connection.execute(select(schema.series.c.name, schema.series.c.kind))
        return {row.name: row.kind for row in rows}


def values(database: Database, folder: Path, name: str, **options: Any) -> list[Any]:
    ingest(database, "r", folder)
    page = read_entries(database, "r", name, **options)
    json.dumps(page, allow_nan=False)
    return [entry["value"] for entry in page["values"]]


def test_each_kind_has_its_name_and_its_values(database: Database, folder: Path, run: MetricLogging) -> None:
    run.log("loss", 0.5)
    run.log_row("row", x=1, y=2)
    run.log_table("table", {"x": [1, 2]})
    run.log_confusion_matrix("cm", MATRIX)
    run.log_residuals("res", {"bin_edges": [0, 1], "bin_counts": [3]})
    run.log_histogram("weights", [0, 1], bins=2)
    run.log_text("sample", "Once <b>upon</b>")
    assert values(database, folder, "cm") == [MATRIX]
    assert values(database, folder, "weights") == [{"bin_edges": [0.0, 0.5, 1.0], "bin_counts": [1, 1]}]
    assert values(database, folder, "sample") == ["Once <b>upon</b>"]
    assert values(database, folder, "row") == [{"x": [1], "y": [2]}]
    assert kinds(database) == {
        "loss": "scalar",
        "row": "row",
        "table": "table",
        "cm": "confusion_matrix",
        "res": "residuals",
        "weights": "histogram",
        "sample": "text",
    }


def test_documents_are_returned_in_the_format_of_sdk_v1(
    database: Database, run: MetricLogging, metrics: Callable[[], dict[str, Any]]
) -> None:
    run.log_confusion_matrix("cm", MATRIX)
    run.log_confusion_matrix("cm", MATRIX, step=2)
    document = {"schema_type": "confusion_matrix", "schema_version": "v1", "data": MATRIX}
    assert metrics()["cm"] == [document, document]


def test_last_values_are_previews(database: Database, folder: Path, run: MetricLogging) -> None:
    run.log_confusion_matrix("cm", MATRIX)
    run.log_text("sample", "x" * 1000)
    run.log_table("table", {"x": [1, 2], "y": [3, 4]})
    ingest(database, "r", folder)
    last = read_last(database, "r")
    assert last["cm"] == "confusion matrix"
    assert last["table"] == {"x": 2, "y": 4}
    assert len(last["sample"]) == 200


def test_rows_and_tables_of_one_name_are_one_series(
    database: Database, folder: Path, run: MetricLogging, metrics: Callable[[], dict[str, Any]]
) -> None:
    run.log_table("both", {"x": [1, 2]})
    run.log_row("both", x=3)
    assert metrics()["both"] == {"x": [1, 2, 3]}
    run.log_row("both", x=4)
    assert metrics()["both"] == {"x": [1, 2, 3, 4]}
    assert kinds(database) == {"both": "table"}
    assert values(database, folder, "both", after=1) == [{"x": [3]}, {"x": [4]}]


def test_another_kind_of_the_same_name_gets_a_suffix(
    database: Database, run: MetricLogging, metrics: Callable[[], dict[str, Any]]
) -> None:
    run.log("loss", 1.0)
    run.log_text("loss", "high")
    run.log_table("loss", {"x": [1]})
    run.log_row("loss", x=2)
    assert metrics() == {"loss": 1.0, "loss (text)": "high", "loss (row)": {"x": [1, 2]}}


def test_steps_and_timestamps_are_kept(database: Database, folder: Path, run: MetricLogging) -> None:
    run.log("loss", 0.5, step=3, timestamp=1000.5)
    run.log("loss", 0.25, timestamp=2000)
    run.log_text("sample", "a", step=7, timestamp=5.0)
    ingest(database, "r", folder)
    assert read_entries(database, "r", "loss") == {
        "name": "loss",
        "kind": "scalar",
        "count": 2,
        "next": 2,
        "values": [
            {"step": 3, "time": 1000.5, "rank": 0, "value": 0.5},
            {"step": None, "time": 2000.0, "rank": 0, "value": 0.25},
        ],
    }
    page = read_entries(database, "r", "sample")
    assert page["values"] == [{"step": 7, "time": 5.0, "rank": 0, "value": "a"}]


def test_values_are_paged(database: Database, folder: Path, run: MetricLogging) -> None:
    for number in range(25):
        run.log_text("sample", str(number))
        run.log("score", number)
    for name, as_value in (("sample", str), ("score", int)):
        assert values(database, folder, name, after=20) == [as_value(number) for number in range(20, 25)]
        assert values(database, folder, name, after=3, limit=2) == [as_value(3), as_value(4)]
        assert values(database, folder, name, after=99) == []
    with pytest.raises(UserErrorException, match="has no metric 'unknown'"):
        read_entries(database, "r", "unknown")


def test_nan_and_infinity_become_strings(database: Database, folder: Path, run: MetricLogging) -> None:
    run.log_row("row", a=math.nan, b=math.inf, c=-math.inf)
    assert values(database, folder, "row") == [{"a": ["NaN"], "b": ["Infinity"], "c": ["-Infinity"]}]


def test_repeated_ingestion_keeps_all_histograms(database: Database, folder: Path, run: MetricLogging) -> None:
    for step in range(10):
        run.log_histogram("weights", range(step + 1), step=step)
        ingest(database, "r", folder)
    assert len(values(database, folder, "weights")) == 10
    assert len(read_metrics(database, ["r"])["r"]["weights"]) == 10
