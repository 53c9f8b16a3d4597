"""Exports as CSV, Parquet and JSON, read back with csv, pandas and json."""

from __future__ import annotations

import csv
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import pytest

from runyard import Experiment, Run
from runyard.errors import UserErrorException
from runyard.exchange.export_runs import RunSelection, export, select_rows


@pytest.fixture
def logged(experiment: Experiment) -> list[Run]:
    runs = []
    for number in range(2):
        run = experiment.start_logging(snapshot_directory=None)
        run.tag("team", ("vision", 'say "hi", all')[number])
        for step in range(3):
            run.log("loss", 1 / (step + 1 + number), step=step)
        if number:
            run.log("odd", math.nan)
            run.log("odd", math.inf)
            run.log_row("curve", x=1, y=2)
        run.complete()
        runs.append(run)
    return runs


def write(experiment: Experiment, folder: Path, format: str, **options: Any) -> Any:
    connection = experiment.workspace.connection
    return export(
        connection, select_rows(connection, RunSelection(experiment=experiment.name)), folder, format, **options
    )


def test_csv_export_writes_runs_and_points(experiment: Experiment, logged: list[Run], tmp_path: Path) -> None:
    result = write(experiment, tmp_path, "csv")
    assert (result.runs, result.points, result.skipped_series) == (2, 8, 1)
    with open(tmp_path / "runs.csv", newline="") as file:
        runs = list(csv.DictReader(file))
    assert [row["run_id"] for row in runs] == [run.id for run in logged]
    assert [row["tags.team"] for row in runs] == ["vision", 'say "hi", all']
    assert float(runs[0]["metrics.loss"]) == 1 / 3
    with open(tmp_path / "metrics.csv", newline="") as file:
        points = list(csv.DictReader(file))
    assert [(p["name"], p["step"], float(p["value"])) for p in points[:3]] == [
        ("loss", "0", 1.0),
        ("loss", "1", 0.5),
        ("loss", "2", 1 / 3),
    ]
    assert [p["value"] for p in points if p["name"] == "odd"] == ["nan", "inf"]
    assert [p["step"] for p in points if p["name"] == "odd"] == ["", ""]


def test_parquet_has_types(experiment: Experiment, logged: list[Run], tmp_path: Path) -> None:
    write(experiment, tmp_path, "parquet")
    runs = pandas.read_parquet(tmp_path / "runs.parquet")
    assert list(runs["status"]) == ["Completed", "Completed"]
    assert str(runs["created_at"].dtype) == "datetime64[us, UTC]"
    assert runs["metrics.loss"][1] == 0.25
    points = pandas.read_parquet(tmp_path / "metrics.parquet")
    assert len(points) == 8
    mine = points[(points["run_id"] == logged[1].id) & (points["name"] == "loss")]
    assert list(mine["value"]) == [0.5, 1 / 3, 0.25]
    assert list(mine["step"]) == [0, 1, 2]
    assert points[points["name"] == "odd"]["step"].isna().all()


def test_json_export_contains_everything(experiment: Experiment, logged: list[Run], tmp_path: Path) -> None:
    write(experiment, tmp_path, "json")
    runs = json.loads((tmp_path / "runs.json").read_text())["runs"]
    assert [run["run_id"] for run in runs] == [run.id for run in logged]
    assert [(step, value) for step, _, value in runs[0]["metrics"]["loss"]] == [(0, 1.0), (1, 0.5), (2, 1 / 3)]
    assert [value for _, _, value in runs[1]["metrics"]["odd"]] == ["NaN", "Infinity"]
    assert runs[1]["values"]["curve"]["values"][0]["value"] == {"x": [1], "y": [2]}
    assert runs[0]["values"] == {}


def test_files_are_exported_on_request(experiment: Experiment, tmp_path: Path) -> None:
    run = experiment.start_logging(snapshot_directory=None)
    (tmp_path / "a.txt").write_text("hello")
    run.upload_file("notes/a.txt", str(tmp_path / "a.txt"))
    run.complete()
    assert write(experiment, tmp_path / "out", "csv", files=True).files == 1
    assert (tmp_path / "out" / "files" / run.id / "notes" / "a.txt").read_text() == "hello"


def test_long_metrics_are_streamed_in_parts(
    experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runyard.exchange.export_runs._MAX_POINTS_PER_REQUEST", 1000)
    run = experiment.start_logging(snapshot_directory=None)
    for step in range(2_500):
        run.log("loss", float(step), step=step)
    run.complete()
    for format in ("csv", "json", "parquet"):
        assert write(experiment, tmp_path / format, format).points == 2_500
    assert [
        value for _, _, value in json.loads((tmp_path / "json/runs.json").read_text())["runs"][0]["metrics"]["loss"]
    ] == [float(step) for step in range(2_500)]
    assert list(pandas.read_parquet(tmp_path / "parquet/metrics.parquet")["value"]) == [float(s) for s in range(2_500)]


def test_an_existing_export_is_replaced_only_with_force(
    experiment: Experiment, logged: list[Run], tmp_path: Path
) -> None:
    write(experiment, tmp_path, "csv")
    with pytest.raises(UserErrorException, match=r"runs\.csv exists already"):
        write(experiment, tmp_path, "csv")
    write(experiment, tmp_path, "csv", force=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["metrics.csv", "runs.csv"]


def test_parquet_without_pyarrow_names_the_package_to_install(
    experiment: Experiment, logged: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(UserErrorException) as caught:
        write(experiment, tmp_path, "parquet")
    assert "pyarrow" in caught.value.message
    assert 'pip install "runyard[parquet]"' in caught.value.hint
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def command(home: Path, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "runyard", *arguments], cwd=tmp_path, env=os.environ, capture_output=True, text=True
        )

    return run


@pytest.mark.real
def test_export_and_import_commands_print_results(
    experiment: Experiment, logged: list[Run], command: Callable[..., Any], tmp_path: Path
) -> None:
    result = command("export", experiment.name)
    assert result.stdout.splitlines() == ["runyard-export/runs.csv", "runyard-export/metrics.csv"]
    assert "2 runs, 8 points" in result.stderr
    assert "use --format json for those" in result.stderr
    single = command("export", logged[0].id, "--format", "json", "-o", "one")
    assert single.returncode == 0
    assert len(json.loads((tmp_path / "one/runs.json").read_text())["runs"]) == 1
    for arguments, message in (
        (("export",), "nothing to export was specified"),
        (("export", "no-such-thing"), "no run or experiment 'no-such-thing'"),
        (("export", experiment.name, "--format", "xlsx"), "format must be one of parquet, csv, json, got 'xlsx'"),
        (("import", "mlflow", "nowhere"), "'nowhere' does not exist"),
        (("import", "aim", "."), "got 'aim'"),
    ):
        failed = command(*arguments)
        assert failed.returncode == 1
        assert message in failed.stderr
        assert "Traceback" not in failed.stderr
