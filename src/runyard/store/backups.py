"""Backups of the yard's database: several generations, each verified before it counts as one.

<home>/backups/yard-20261117T004100Z-0009.db    a generation: its time, and the version of its schema
<home>/yard.db.backup                           the newest; another name of the same file
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from calendar import timegm
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from runyard import clock
from runyard.errors import StoreCorrupted
from runyard.posix.atomic_write import draft_path, replace_file
from runyard.store.integrity import inspect_database, run_count

BACKUP_EVERY_S = 24 * 3600
FOLDER = "backups"
_TIME_FORMAT = "%Y%m%dT%H%M%SZ"
_NAME = re.compile(r"yard-(\d{8}T\d{6}Z)-(\w+)\.db")
_DAYS, _WEEKS, _VERSIONS = 7, 4, 2  # the newest backup of each of so many


@dataclass(frozen=True)
class Backup:
    path: Path
    created_at: float
    version: str = ""  # of the schema; empty if the name does not contain it

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def time_text(self) -> str:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(self.created_at))


def backup_path(database: Path) -> Path:
    """The file that is always the newest backup."""
    return database.with_name(database.name + ".backup")


def list_backups(database: Path) -> list[Backup]:
    """All backups, newest first, without checking them."""
    backups = []
    folder = database.with_name(FOLDER)
    for path in folder.iterdir() if folder.is_dir() else ():
        match = _NAME.fullmatch(path.name)
        if match is not None:
            with suppress(ValueError):  # not a time
                backups.append(Backup(path, float(timegm(time.strptime(match[1], _TIME_FORMAT))), match[2]))
    single = backup_path(database)  # of an earlier version, which had no generations
    if single.is_file() and not any(backup.path.samefile(single) for backup in backups):
        backups.append(Backup(single, single.stat().st_mtime))
    return sorted(backups, key=lambda backup: backup.created_at, reverse=True)


def backup_is_due(database: Path) -> bool:
    """True if the newest backup is older than a day, or from the future because the clock was wrong."""
    return all(not -60 <= clock.now() - backup.created_at <= BACKUP_EVERY_S for backup in list_backups(database))


def back_up(database: Path, source: sqlite3.Connection | None = None) -> Backup:
    """Write a consistent copy, verify it, and remove generations that are no longer needed.

    Args:
        database: The file.
        source: An open connection to it; needed if the file was removed since it was opened.

    Raises:
        StoreCorrupted: The copy is damaged, or it is empty and an older backup is not. Nothing was replaced.
    """
    folder = database.with_name(FOLDER)
    folder.mkdir(mode=0o700, exist_ok=True)
    for path in folder.glob("*.draft*"):  # of a killed yard; the caller holds the yard's lock
        path.unlink(missing_ok=True)
    draft = draft_path(folder / "yard.db")
    try:
        _copy(source or _open(database), draft, close=source is None)
        version = _verify(database, draft)
        now = clock.now()
        backup = Backup(folder / f"yard-{time.strftime(_TIME_FORMAT, time.gmtime(now))}-{version}.db", now, version)
        with open(draft, "rb") as file:
            os.fsync(file.fileno())
        _adopt_single(database)
        draft.replace(backup.path)
    finally:
        draft.unlink(missing_ok=True)
    with replace_file(backup_path(database)) as link:
        os.link(backup.path, link)
    for old in superfluous(list_backups(database)):
        old.path.unlink(missing_ok=True)
    return backup


def superfluous(backups: Iterable[Backup]) -> list[Backup]:
    """The backups to remove: kept are the newest of each of 7 days, 4 weeks and 2 versions of the schema."""
    days: set[object] = set()
    weeks: set[object] = set()
    versions: set[object] = set()
    removed = []
    for backup in sorted(backups, key=lambda backup: backup.created_at, reverse=True):
        date = time.gmtime(backup.created_at)
        is_needed = False
        for groups, limit, group in (
            (days, _DAYS, (date.tm_year, date.tm_yday)),
            (weeks, _WEEKS, (backup.created_at // 86400 + 3) // 7),  # 1970-01-01 was a Thursday
            (versions, _VERSIONS, backup.version),
        ):
            if group not in groups and len(groups) < limit:
                groups.add(group)
                is_needed = True
        if not is_needed:
            removed.append(backup)
    return removed


def _open(database: Path) -> sqlite3.Connection:
    # not plain `connect`, which creates an empty database if the file was removed
    return sqlite3.connect(f"file:{quote(str(database))}?mode=rw", uri=True, timeout=30)


def _copy(source: sqlite3.Connection, target_path: Path, *, close: bool) -> None:
    try:
        os.close(os.open(target_path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        target = sqlite3.connect(target_path)
        try:
            source.backup(target)
            target.execute("PRAGMA journal_mode=DELETE")  # one file that is complete without a write-ahead log
        finally:
            target.close()
    finally:
        if close:
            source.close()


def _verify(database: Path, draft: Path) -> str:
    """The schema version of a copy that may become a backup."""
    state = inspect_database(draft, is_static=True)
    if state.problems:
        raise StoreCorrupted(
            f"no backup was made: the copy of {database} failed its integrity check: {state.problems[0]}",
            hint="the earlier backups are unchanged; check the database with `runyard fsck`",
            path=str(database),
        )
    if state.runs == 0:
        other = next((b for b in list_backups(database) if run_count(b.path, is_static=True)), None)
        if other is not None:
            raise StoreCorrupted(
                f"no backup was made: {database} has no runs, but the backup of {other.time_text} has",
                hint="the earlier backups are unchanged; restore one with `runyard restore`",
                path=str(database),
            )
    return state.version


def _adopt_single(database: Path) -> None:
    """Make the only backup of an earlier version a generation, so that it is not replaced."""
    single = backup_path(database)
    for backup in list_backups(database):
        if backup.path == single:
            date = time.strftime(_TIME_FORMAT, time.gmtime(backup.created_at))
            version = inspect_database(single, quick=True, is_static=True).version or "unknown"
            with suppress(FileExistsError):
                os.link(single, database.with_name(FOLDER) / f"yard-{date}-{version}.db")
