"""Checks a home folder: database, backups, runs, stored files, models, snapshots, environments, data cache."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from runyard.posix import file_lock
from runyard.spec.folder import HomeFolder
from runyard.store.integrity import open_read_only
from runyard.yard.fsck import data_cache, database, environments, runs, snapshots, stored_files
from runyard.yard.fsck.report import Area, Report


def check_home(home: Path, *, quick: bool, on_progress: Callable[[Area], None]) -> Report:
    """Check everything; ``quick`` compares names, sizes and records, and reads no contents."""
    report = Report(quick, on_progress)
    folder = HomeFolder(home)
    is_running = file_lock.is_held(folder.yard_lock)
    is_readable = database.check(folder, report)
    if is_readable:
        try:
            with open_read_only(folder.database) as connection:
                _check_records(folder, connection, report, is_running)
        except sqlite3.DatabaseError as error:  # a damaged page that the check above did not read
            report.damage(str(folder.database), str(error), database.REMEDY)
    else:
        stored_files.check_contents(folder.artifacts, report)
        snapshots.check(folder.snapshots, report, {})
    environments.check(folder.environments, report)
    data_cache.check(folder.data / "cache", report)
    return report


def _check_records(folder: HomeFolder, connection: sqlite3.Connection, report: Report, is_running: bool) -> None:
    runs.check(folder, connection, report, is_running)
    stored_files.check(folder.artifacts, connection, report, is_running)
    snapshot_users = connection.execute(
        "SELECT snapshot_id, run_id FROM runs WHERE snapshot_id IS NOT NULL AND spec IS NOT NULL ORDER BY number"
    )
    snapshots.check(folder.snapshots, report, {str(snapshot): str(run) for snapshot, run in snapshot_users})
