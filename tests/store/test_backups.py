"""Generations of backups: verified, never replaced by an empty or damaged copy."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from runyard import clock
from runyard.errors import StoreCorrupted
from runyard.lifecycle.state import Life
from runyard.store.backups import Backup, back_up, backup_is_due, backup_path, list_backups, superfluous
from runyard.store.database import Database
from runyard.store.integrity import inspect_database, run_count
from runyard.store.open_store import create_database, open_database
from runyard.store.runs import RunRecord, RunStore

DAY_S = 86400.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database with one run."""
    database = open_database(tmp_path / "yard.db")
    add_run(database, "r-1")
    database.close()
    return tmp_path / "yard.db"


def add_run(database: Database, run_id: str) -> None:
    assert RunStore(database).insert(RunRecord(run_id, "digits", Life(), 1.0), {}, {}) is not None


def set_clock(monkeypatch: pytest.MonkeyPatch, time_s: float) -> None:
    monkeypatch.setattr(clock, "now", lambda: time_s)


def test_a_backup_is_complete_in_one_private_file(path: Path) -> None:
    database = open_database(path)
    add_run(database, "r-2")  # still in the write-ahead log
    backup = back_up(path)
    database.close()
    assert inspect_database(backup.path, is_static=True).problems == ()
    assert run_count(backup.path, is_static=True) == 2
    assert [entry.name for entry in backup.path.parent.iterdir()] == [backup.name]
    assert backup.path.stat().st_mode & 0o077 == 0
    assert backup_path(path).samefile(backup.path)


def test_daily_backups_of_two_months_leave_seven_days_and_four_weeks(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = clock.now()
    for day in range(60):
        set_clock(monkeypatch, start + day * DAY_S)
        back_up(path)
    ages = [round((start + 59 * DAY_S - backup.created_at) / DAY_S) for backup in list_backups(path)]
    assert ages[:7] == [0, 1, 2, 3, 4, 5, 6]
    assert len(ages) in (9, 10)
    assert 14 <= ages[-1] <= 28


def test_the_backup_before_a_migration_outlives_the_next_one_of_its_day() -> None:
    old, new = Backup(Path("a"), 1000.0, "0008"), Backup(Path("b"), 2000.0, "0009")
    assert superfluous([old, new]) == []
    assert superfluous([old, new, Backup(Path("c"), 3000.0, "0009")]) == [new]


def test_an_empty_database_does_not_replace_a_backup_with_runs(path: Path) -> None:
    backup = back_up(path)
    before = backup.path.read_bytes()
    path.unlink()
    create_database(path).close()
    with pytest.raises(StoreCorrupted, match="has no runs, but the backup"):
        back_up(path)
    assert [b.path for b in list_backups(path)] == [backup.path]
    assert backup_path(path).read_bytes() == before


def test_a_damaged_database_does_not_replace_a_backup(path: Path) -> None:
    backup = back_up(path)
    content = bytearray(path.read_bytes())
    content[-4096:] = b"\xff" * 4096
    path.write_bytes(content)
    with pytest.raises((StoreCorrupted, sqlite3.DatabaseError)):
        back_up(path)
    assert [b.path for b in list_backups(path)] == [backup.path]
    assert inspect_database(backup_path(path), is_static=True).problems == ()
    assert [entry.name for entry in backup.path.parent.iterdir()] == [backup.name]


def test_a_removed_database_is_not_backed_up_as_an_empty_one(path: Path) -> None:
    path.unlink()
    with pytest.raises(sqlite3.OperationalError):
        back_up(path)
    assert not path.exists()
    assert list_backups(path) == []


def test_the_single_backup_of_an_earlier_version_becomes_a_generation(path: Path) -> None:
    single = backup_path(path)
    single.write_bytes(path.read_bytes())
    os.utime(single, (clock.now() - 3 * DAY_S,) * 2)
    assert [backup.path for backup in list_backups(path)] == [single]
    assert backup_is_due(path)
    back_up(path)
    assert [round((clock.now() - backup.created_at) / DAY_S) for backup in list_backups(path)] == [0, 3]
    assert all(run_count(backup.path, is_static=True) == 1 for backup in list_backups(path))


@pytest.mark.parametrize(("later_s", "is_due"), [(3600.0, False), (DAY_S + 1, True), (-2 * DAY_S, True)])
def test_a_backup_is_due_after_a_day_or_if_the_last_one_is_from_the_future(
    path: Path, monkeypatch: pytest.MonkeyPatch, later_s: float, is_due: bool
) -> None:
    assert backup_is_due(path)
    back_up(path)
    set_clock(monkeypatch, clock.now() + later_s)
    assert backup_is_due(path) == is_due


def test_foreign_files_in_the_folder_are_ignored(path: Path) -> None:
    backup = back_up(path)
    for name in ("notes.txt", "yard-99999999T999999Z-0001.db", "yard-x.db"):
        (backup.path.parent / name).write_text("x")
    assert [b.path for b in list_backups(path)] == [backup.path]
