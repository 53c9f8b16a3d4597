"""Opens the yard's database: creates it, migrates an old one, and reports a damaged one without changing it.

The caller holds the yard's lock, so no other process does this concurrently.
"""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

from runyard import __version__, clock
from runyard.errors import HomeUnusable, StoreCorrupted
from runyard.posix.atomic_write import write_text
from runyard.spec.folder import HomeFolder
from runyard.store import schema
from runyard.store.backups import back_up, list_backups
from runyard.store.database import Database, sqlite_url
from runyard.store.integrity import run_count

HEAD = "0012"  # the newest file in migrations/versions; a test checks this
_MAX_CHECKED_BYTES = 256 * 1024 * 1024  # a check reads the complete file: about a second for this size
_MAX_SHOWN_BACKUPS = 3
_MIGRATIONS = Path(__file__).parent / "migrations"


def open_database(path: Path) -> Database:
    """Open or create the database.

    Raises:
        StoreCorrupted: The file is damaged, or the home folder was used before and its database is missing.
        HomeUnusable: A newer version of Runyard has changed the database.
    """
    version = _version(path)
    if version is None:
        contents = _earlier_contents(path)
        if contents:
            raise _missing_error(path, contents)
        return create_database(path)
    if version != HEAD:
        if version not in supported_versions():
            raise _newer_error(path, version)
        back_up(path)
        migrate(path)
    _mark_created(path)
    database = Database(path)
    _record_writer(database)
    return database


def create_database(path: Path) -> Database:
    """Create an empty database in a new or empty file."""
    database = Database(path)
    with database.write() as connection:
        # creates the same tables as the migrations, without importing Alembic, which takes most of a second
        schema.metadata.create_all(connection)
        connection.exec_driver_sql("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
        connection.exec_driver_sql("INSERT INTO alembic_version VALUES (?)", (HEAD,))
    path.chmod(0o600)
    _mark_created(path)
    _record_writer(database)
    return database


def supported_versions() -> set[str]:
    """The schema versions that this version of Runyard can open."""
    return {file.name.partition("_")[0] for file in (_MIGRATIONS / "versions").glob("[0-9]*.py")}


def migrate(path: Path) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    config.attributes["url"] = sqlite_url(path)
    command.upgrade(config, "head")


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
    return StoreCorrupted(
        f"the yard's database {path} is damaged: {reason}. The file was not changed; the runs' folders are intact",
        hint=_restore_hint(path),
        path=str(path),
    )


def _missing_error(path: Path, contents: str) -> StoreCorrupted:
    condition = "empty" if path.exists() else "missing"
    return StoreCorrupted(
        f"the yard's database {path} is {condition}, but {contents}. Nothing was changed",
        hint=_restore_hint(path),
        path=str(path),
    )


def _restore_hint(path: Path) -> str:
    backups = list_backups(path)
    rebuild = "`runyard restore --empty` creates a new database from the runs' folders"
    if not backups:
        is_salvageable = path.exists() and path.stat().st_size > 0
        salvage = f"salvage the readable part with sqlite3 {path} .recover | sqlite3 {path}.recovered, or "
        return f"there is no backup; {salvage if is_salvageable else ''}{rebuild}"
    texts = []
    for backup in backups[:_MAX_SHOWN_BACKUPS]:
        runs = run_count(backup.path, is_static=True)
        texts.append(f"{backup.time_text} ({'unreadable' if runs is None else _run_count_text(runs)})")
    more = f" and {len(backups) - len(texts)} more" if len(backups) > len(texts) else ""
    return (
        f"restore the newest backup with `runyard restore`; `runyard restore --list` lists them: {', '.join(texts)}"
        f"{more}. Or {rebuild}"
    )


def _run_count_text(count: int) -> str:
    return f"{count:,} run" if count == 1 else f"{count:,} runs"


def _earlier_contents(path: Path) -> str:
    """Evidence that the home folder had a database before; empty for a new home folder."""
    home = HomeFolder(path.parent)
    run_folders = sum(1 for _ in home.runs.iterdir()) if home.runs.is_dir() else 0
    if run_folders:
        return f"its home folder has the folders of {_run_count_text(run_folders)}"
    if home.artifacts.is_dir() and any(folder.is_dir() for folder in home.artifacts.iterdir()):
        return "its home folder has stored files of runs"
    if list_backups(path):
        return "there are backups of it"
    if home.created.exists():
        return "this home folder has been used before"
    return ""


def _record_writer(database: Database) -> None:
    """Store the version of Runyard in SQLite's number for it, so that an older version can name it in its error."""
    number = _version_number(__version__)
    with database.read() as connection:
        recorded = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
    if recorded != number:
        with database.write() as connection:
            connection.exec_driver_sql(f"PRAGMA user_version = {number}")


def _version_number(version: str) -> int:
    """0.12.3 becomes 12003. Versions that are not three numbers become 0, as in files of earlier versions."""
    match = re.match(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})", version)
    return int(match[1]) * 1_000_000 + int(match[2]) * 1000 + int(match[3]) if match else 0


def _newer_error(path: Path, version: str) -> HomeUnusable:
    with closing(sqlite3.connect(path)) as connection:
        number = int(connection.execute("PRAGMA user_version").fetchone()[0])
    writer = f"{number // 1_000_000}.{number // 1000 % 1000}.{number % 1000}" if number else ""
    newer = f"Runyard {writer}" if writer else "a newer version of Runyard"
    return HomeUnusable(
        f"the yard's database {path} was written by {newer} (schema {version}); this is Runyard {__version__}, which "
        f"reads schemas up to {HEAD}. Nothing was changed",
        hint=f"upgrade this installation: pip install --upgrade 'runyard{f'>={writer}' if writer else ''}'; "
        "or set RUNYARD_HOME to another folder; `runyard restore --list` shows backups that this version may read",
        path=str(path),
    )


def _mark_created(path: Path) -> None:
    """Leave a mark in the home folder, by which a database that is missing later is recognized as lost."""
    created = HomeFolder(path.parent).created
    if not created.exists():
        write_text(created, json.dumps({"created_at": clock.now()}))
