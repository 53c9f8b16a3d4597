"""Compares the folders of runs with the database."""

from __future__ import annotations

import sqlite3

from runyard.spec.folder import HomeFolder
from runyard.yard.fsck.report import Report


def check(folder: HomeFolder, connection: sqlite3.Connection, report: Report, is_running: bool) -> None:
    report.begin("runs")
    query = "SELECT run_id, managed = 1 AND spec IS NOT NULL AND spec <> 'null' FROM runs ORDER BY number"
    has_folder = {str(run_id): bool(is_submitted) for run_id, is_submitted in connection.execute(query)}
    folders = {path.name for path in folder.runs.iterdir()} if folder.runs.is_dir() else set()
    for run_id, is_submitted in has_folder.items():
        report.checked()
        if is_submitted and run_id not in folders:
            report.damage(f"run {run_id}", "its folder with its logs is missing", "restore the folder from a backup")
    if is_running:  # a run that was submitted since the query has a folder, too
        query = "SELECT run_id FROM runs"
        has_folder.update((str(run_id), True) for (run_id,) in connection.execute(query))
    for name in sorted(folders - has_folder.keys()):
        report.note(
            str(folder.runs / name),
            "the folder belongs to no run of the database",
            "`runyard restore` adds runs that a backup does not have; otherwise remove the folder",
        )
