"""Helpers for tests of imports: import a folder, and read back what the yard has stored."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from runyard import Experiment, Run, Workspace
from runyard.exchange.detect import find_runs
from runyard.exchange.import_runs import ImportCounts, import_runs
from runyard.wire.points import decode_points

Points = list[tuple[int, float, float]]


def import_from(workspace: Workspace, source: str, path: Path) -> ImportCounts:
    return import_runs(workspace.connection, find_runs(source, path))


def runs_of(workspace: Workspace, experiment: str) -> dict[str, Run]:
    runs = Experiment(workspace, experiment).get_runs(include_children=True)
    return {run.name: run for run in runs}


def points(run: Run, name: str) -> Points:
    """The points of a metric as (step, time, value)."""
    decoded = decode_points(run.experiment.workspace.connection.read(f"/api/runs/{run.id}/metrics/{name}"))
    return list(zip(decoded.steps, decoded.times, decoded.values))


def row_of(workspace: Workspace, run: Run) -> dict[str, Any]:
    rows = workspace.connection.get("/api/runs/table", experiment=run.experiment.name, limit=1000)["rows"]
    row: dict[str, Any] = next(row for row in rows if row["run_id"] == run.id)
    return row


def tracker_variables(folder: Path) -> dict[str, str]:
    """Variables with which W&B works offline, in this folder, and writes its file at once."""
    return {
        **os.environ,
        "WANDB_MODE": "offline",
        "WANDB_ERROR_REPORTING": "false",
        "WANDB_CACHE_DIR": str(folder / "cache"),
        "WANDB_DATA_DIR": str(folder / "data"),
        "WANDB_CONFIG_DIR": str(folder / "config"),
        "WANDB_X_TRANSACTION_LOG_FLUSH_INTERVAL": "0.5",
    }
