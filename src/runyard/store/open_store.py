"""Opens the yard's database: creates it, migrates an old one, and reports a damaged one without changing it.

The caller holds the yard's lock, so no other process does this concurrently.
"""

from __future__ import annotations

import shutil
import sqlite3
import time
from pathlib import Path

from runyard.errors import StoreCorrupted
from runyard.posix.atomic_write import replace_file
from runyard.store import schema
from runyard.store.database import Database, sqlite_url

HEAD = "0009"  # the newest file in migrations/versions; a test checks this
BACKUP_EVERY_S = 24 * 3600
_MAX_CHECKED_BYTES = 256 * 1024 * 1024  # a check reads the complete file: about a second for this size


def open_database(path: Path) -> Database:
    version = _version(path)
    if version is None:
        database = Database(path)
        with database.write() as connection:
            connection.exec_driver_sql("BEGIN")  # Python does not begin a transaction for CREATE TABLE
            # creates the same tables as the migrations, without importing Alembic, which takes most of a second
            schema.metadata.create_all(connection)
            connection.exec_driver_sql("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
            connection.exec_driver_sql("INSERT INTO alembic_version VALUES (?)", (HEAD,))
        path.chmod(0o600)
        return database
    if version != HEAD:
        back_up(path)
        migrate(path)
    return Database(path)


def migrate(path: Path) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["url"] = sqlite_url(path)
    command.upgrade(config, "head")


def backup_path(path: Path) -> Path:
    return path.with_name(path.name + ".backup")


def back_up(path: Path) -> None:
    """Write a consistent copy with SQLite's own backup."""
    with replace_file(backup_path(path)) as draft:
        source, target = sqlite3.connect(path), sqlite3.connect(draft)
        try:
            source.backup(target)
        finally:
            target.close()
            source.close()
        draft.chmod(0o600)


def backup_is_due(path: Path) -> bool:
    copy = backup_path(path)
    return not copy.exists() or time.time() - copy.stat().st_mtime > BACKUP_EVERY_S


def _version(path: Path) -> str | None:
    """The schema version of the file; None if it is new."""
    if not path.exists() or path.stat().st_size == 0:
        return None
    try:
        connection = sqlite3.connect(path)
        try:
            if path.stat().st_size <= _MAX_CHECKED_BYTES:
                (result,) = connection.execute("PRAGMA quick_check(1)").fetchone()
                if result != "ok":
                    raise corruption_error(path, result)
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
            if not tables:
                return None
            if "alembic_version" not in tables:
                raise corruption_error(path, "it is not a Runyard database")
            return str(connection.execute("SELECT version_num FROM alembic_version").fetchone()[0])
        finally:
            connection.close()
    except sqlite3.DatabaseError as error:
        raise corruption_error(path, str(error)) from error


def corruption_error(path: Path, reason: str) -> StoreCorrupted:
    copy = backup_path(path)
    if copy.exists():
        day = time.strftime("%Y-%m-%d %H:%M", time.localtime(copy.stat().st_mtime))
        # SQLite would apply the damaged database's write-ahead log to the copy
        advice = f"restore the copy of {day}: rm -f {path}-wal {path}-shm && cp {copy} {path}"
    else:
        tool = "sqlite3" if shutil.which("sqlite3") else "the sqlite3 tool"
        advice = f"salvage the readable part with {tool}: sqlite3 {path} .recover | sqlite3 {path}.recovered"
    return StoreCorrupted(
        f"the yard's database {path} is damaged: {reason}. The file was not changed; the runs' folders are intact",
        hint=f"make a copy of the file, then {advice}; or move it away to start with an empty yard",
        path=str(path),
    )
