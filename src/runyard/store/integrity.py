"""Reads database files without changing them: what is wrong with one, and how many runs it has."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

_MAX_PROBLEMS = 20


@dataclass(frozen=True)
class DatabaseState:
    version: str = ""  # of the schema; empty if it is unknown
    runs: int = 0
    problems: tuple[str, ...] = ()  # empty if the database is intact


def inspect_database(path: Path, *, quick: bool = False, is_static: bool = False) -> DatabaseState:
    """Check a database file.

    Args:
        path: The file.
        quick: Do not compare indexes with their tables.
        is_static: No process has the file open, as for a backup; then no files are created next to it.
    """
    try:
        if path.stat().st_size == 0:
            return DatabaseState(problems=("it is empty",))
        with open_read_only(path, is_static=is_static) as connection:
            return _inspect(connection, quick)
    except FileNotFoundError:
        return DatabaseState(problems=("it is missing",))
    except (OSError, sqlite3.DatabaseError) as error:
        return DatabaseState(problems=(str(error),))


def run_count(path: Path, *, is_static: bool = False) -> int | None:
    """The number of runs in a database; None if it cannot be read. Much faster than a complete check."""
    try:
        with open_read_only(path, is_static=is_static) as connection:
            return int(connection.execute("SELECT count(*) FROM runs").fetchone()[0])
    except (OSError, sqlite3.DatabaseError):
        return None


@contextmanager
def open_read_only(path: Path, *, is_static: bool = False) -> Iterator[sqlite3.Connection]:
    # "immutable": SQLite neither locks the file nor looks for its write-ahead log
    options = "mode=ro&immutable=1" if is_static else "mode=ro"
    connection = sqlite3.connect(f"file:{quote(str(path))}?{options}", uri=True, timeout=30)
    try:
        yield connection
    finally:
        connection.close()


def _inspect(connection: sqlite3.Connection, quick: bool) -> DatabaseState:
    check = "quick_check" if quick else "integrity_check"
    problems = [text for (text,) in connection.execute(f"PRAGMA {check}({_MAX_PROBLEMS})") if text != "ok"]
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if "alembic_version" not in tables:
        return DatabaseState(problems=(*problems, "it is not a Runyard database"))
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    if row is None:
        return DatabaseState(problems=(*problems, "it has no schema version"))
    for table, number, parent, _ in connection.execute("PRAGMA foreign_key_check").fetchmany(_MAX_PROBLEMS):
        problems.append(f"row {number} of {table} refers to a missing row of {parent}")
    runs = int(connection.execute("SELECT count(*) FROM runs").fetchone()[0]) if "runs" in tables else 0
    return DatabaseState(str(row[0]), runs, tuple(problems))
