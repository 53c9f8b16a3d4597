"""Opening the yard's database: made when new, migrated when old, kept and named when damaged.

The caller holds the yard's lock, so there is one process here at a time.
"""

from __future__ import annotations

import shutil
import sqlite3
import time
from pathlib import Path

from runyard.errors import StoreCorrupted
from runyard.store import schema
from runyard.store.database import Database, url_of

HEAD = "0009"  # the newest file in migrations/versions; a test keeps it true
BACKUP_EVERY_S = 24 * 3600
_CHECKED_UP_TO_BYTES = 256 * 1024 * 1024  # a full check reads everything: about a second for this much


def open_database(path: Path) -> Database:
    version = _version(path)
    if version is None:
        database = Database(path)
        with database.write() as connection:
            connection.exec_driver_sql("BEGIN")  # all or nothing: Python begins no transaction for tables
            # the same tables that the migrations make; without loading Alembic, which takes most of a second
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
    config.attributes["url"] = url_of(path)
    command.upgrade(config, "head")


def backup_of(path: Path) -> Path:
    return path.with_name(path.name + ".backup")


def back_up(path: Path) -> None:
    """A copy that is whole: SQLite's own backup into a new file, then a rename."""
    fresh = path.with_name(path.name + ".backup-new")
    source, target = sqlite3.connect(path), sqlite3.connect(fresh)
    try:
        source.backup(target)
    finally:
        target.close()
        source.close()
    fresh.chmod(0o600)
    fresh.replace(backup_of(path))


def backup_is_due(path: Path) -> bool:
    copy = backup_of(path)
    return not copy.exists() or time.time() - copy.stat().st_mtime > BACKUP_EVERY_S


def _version(path: Path) -> str | None:
    """The schema's version in the file; None for a new one."""
    if not path.exists() or path.stat().st_size == 0:
        return None
    try:
        connection = sqlite3.connect(path)
        try:
            if path.stat().st_size <= _CHECKED_UP_TO_BYTES:
                (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
                if verdict != "ok":
                    raise corrupted(path, verdict)
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
            if not tables:
                return None
            if "alembic_version" not in tables:
                raise corrupted(path, "it is not a database of this program")
            return str(connection.execute("SELECT version_num FROM alembic_version").fetchone()[0])
        finally:
            connection.close()
    except sqlite3.DatabaseError as error:
        raise corrupted(path, str(error)) from error


def corrupted(path: Path, reason: str) -> StoreCorrupted:
    copy = backup_of(path)
    if copy.exists():
        day = time.strftime("%Y-%m-%d %H:%M", time.localtime(copy.stat().st_mtime))
        # what SQLite keeps beside the file belongs to the damaged one, and would be read into the copy
        way = f"restore the copy of {day}: rm -f {path}-wal {path}-shm && cp {copy} {path}"
    else:
        tool = "sqlite3" if shutil.which("sqlite3") else "the sqlite3 tool"
        way = f"salvage what is readable with {tool}: sqlite3 {path} .recover | sqlite3 {path}.recovered"
    return StoreCorrupted(
        f"the yard's database {path} is damaged: {reason}. It was kept as it is; the runs' own folders are not touched",
        hint=f"stop here, make a copy of it, then {way}; or move it away to start with an empty yard",
        path=str(path),
    )
