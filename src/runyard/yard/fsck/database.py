"""Checks the database and its backups."""

from __future__ import annotations

from runyard.spec.folder import HomeFolder
from runyard.store.backups import list_backups
from runyard.store.integrity import inspect_database
from runyard.store.open_store import supported_versions
from runyard.yard.fsck.report import Report

REMEDY = "restore a backup with `runyard restore`"


def check(folder: HomeFolder, report: Report) -> bool:
    """Returns True if the records of the database can be compared with the files."""
    path = folder.database
    report.begin("database")
    state = inspect_database(path, quick=report.quick)
    report.checked(path.stat().st_size if path.exists() else 0)
    for problem in state.problems:
        report.damage(str(path), problem, REMEDY)
    is_supported = state.version in supported_versions()
    if state.version and not is_supported:
        report.damage(str(path), f"its schema {state.version} is newer than this version of Runyard", "update Runyard")
    report.begin("backups")
    for backup in list_backups(path):
        report.checked(backup.path.stat().st_size)
        problems = inspect_database(backup.path, quick=report.quick, is_static=True).problems
        if problems:
            report.damage(str(backup.path), problems[0], "remove it; the yard makes a new backup every day")
    return is_supported
