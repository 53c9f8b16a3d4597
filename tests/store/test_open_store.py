from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy.exc import OperationalError

from runyard import __version__
from runyard.errors import HomeUnusable, StoreCorrupted
from runyard.store import open_store
from runyard.store.backups import back_up, backup_path
from runyard.store.open_store import HEAD, migrate, open_database


def tables(path: Path) -> dict[str, str]:
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")
        return {name: " ".join((sql or "").split()) for name, sql in rows if name != "alembic_version"}


def test_a_new_database_has_the_same_tables_as_a_migrated_one(tmp_path: Path) -> None:
    open_database(tmp_path / "new.db").close()
    sqlite3.connect(tmp_path / "migrated.db").close()
    migrate(tmp_path / "migrated.db")
    assert tables(tmp_path / "new.db") == tables(tmp_path / "migrated.db")


def test_head_is_the_newest_migration() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(open_store.__file__).parent / "migrations"))
    assert ScriptDirectory.from_config(config).get_current_head() == HEAD


def test_an_interrupted_creation_leaves_no_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(connection: object) -> None:
        create_all(connection)
        raise KeyboardInterrupt

    create_all = open_store.schema.metadata.create_all
    monkeypatch.setattr(open_store.schema.metadata, "create_all", interrupt)
    with pytest.raises(KeyboardInterrupt):
        open_database(tmp_path / "yard.db")
    assert tables(tmp_path / "yard.db") == {}
    monkeypatch.undo()
    open_database(tmp_path / "yard.db").close()


def test_a_database_is_private(tmp_path: Path) -> None:
    open_database(tmp_path / "yard.db").close()
    assert (tmp_path / "yard.db").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("damage", ["no database", "torn page"])
def test_a_damaged_database_is_not_changed_and_the_hint_restores_it(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "yard.db"
    open_database(path).close()
    back_up(path)
    if damage == "no database":
        path.write_bytes(b"this was a database once" * 100)
    else:
        content = bytearray(path.read_bytes())
        content[4096:8192] = b"\xff" * 4096
        path.write_bytes(content)
    before = path.read_bytes()
    with pytest.raises(StoreCorrupted) as caught:
        open_database(path)
    assert str(path) in caught.value.message
    assert "`runyard restore`" in caught.value.hint
    assert path.read_bytes() == before


@pytest.mark.parametrize("loss", ["deleted", "empty", "without tables"])
@pytest.mark.parametrize("evidence", ["runs", "artifacts", "backups", "home.json"])
def test_a_lost_database_is_not_replaced_by_an_empty_one(tmp_path: Path, loss: str, evidence: str) -> None:
    path = tmp_path / "yard.db"
    open_database(path).close()
    if evidence == "backups":
        back_up(path)
    elif evidence != "home.json":
        (tmp_path / evidence / "ab").mkdir(parents=True)
    if evidence != "home.json":
        (tmp_path / "home.json").unlink()
    path.unlink()
    if loss == "empty":
        path.touch()
    elif loss == "without tables":
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE t (x)")
            connection.execute("DROP TABLE t")
    before = path.read_bytes() if path.exists() else None
    for _ in range(2):
        with pytest.raises(StoreCorrupted, match=r"missing, but|empty, but") as caught:
            open_database(path)
        assert "runyard restore" in caught.value.hint
    assert (path.read_bytes() if path.exists() else None) == before


def test_the_error_for_a_lost_database_lists_the_backups(tmp_path: Path) -> None:
    path = tmp_path / "yard.db"
    open_database(path).close()
    backup = back_up(path)
    path.unlink()
    with pytest.raises(StoreCorrupted) as caught:
        open_database(path)
    assert f"{backup.time_text} (0 runs)" in caught.value.hint


def test_a_home_of_an_earlier_version_is_marked_when_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "yard.db"
    open_database(path).close()
    (tmp_path / "home.json").unlink()
    open_database(path).close()
    path.unlink()
    with pytest.raises(StoreCorrupted, match="has been used before"):
        open_database(path)


def test_an_open_database_does_not_continue_in_a_new_file(tmp_path: Path) -> None:
    path = tmp_path / "yard.db"
    database = open_database(path)
    path.unlink()
    database.close()
    with pytest.raises(OperationalError), database.read():
        pass
    assert not path.exists()


def test_a_foreign_database_is_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "yard.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE mine (x)")
    with pytest.raises(StoreCorrupted, match="not a Runyard database"):
        open_database(path)
    assert list(tables(path)) == ["mine"]


def create_first_version(path: Path) -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(open_store.__file__).parent / "migrations"))
    config.attributes["url"] = f"sqlite:///{path}"
    command.upgrade(config, "0001")


def test_a_migration_adds_parameters_and_changes_of_runs(tmp_path: Path) -> None:
    path = tmp_path / "yard.db"
    create_first_version(path)
    with sqlite3.connect(path) as connection:
        for run_id, spec in (("r-1", {"arguments": ["--lr", "0.1"]}), ("r-2", None)):
            connection.execute(
                "INSERT INTO runs (run_id, experiment, root_id, state, managed, spec, timeline, warnings, created_at, "
                "version) VALUES (?, 'digits', ?, 'Completed', 1, ?, '{}', '[]', 0, 0)",
                (run_id, run_id, json.dumps(spec)),
            )
    database = open_database(path)
    with database.read() as connection:
        assert connection.exec_driver_sql("SELECT * FROM params").all() == [("r-1", "lr", "0.1")]
        assert connection.exec_driver_sql("SELECT run_id FROM changes ORDER BY change").all() == [("r-1",), ("r-2",)]
    database.close()


def test_a_failed_migration_leaves_the_database_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "yard.db"
    create_first_version(path)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE sweeps (conflict)")  # a later migration creates it
    before = tables(path)
    for _ in range(2):  # the second attempt starts from the same state
        with pytest.raises(OperationalError, match="table sweeps already exists"):
            open_database(path)
        assert tables(path) == tables(backup_path(path)) == before
        with sqlite3.connect(path) as connection:
            assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [("0001",)]


@pytest.mark.parametrize(("number", "writer"), [(12_003_004, "Runyard 12.3.4"), (0, "a newer version of Runyard")])
def test_a_database_of_a_newer_version_is_named_and_not_changed(tmp_path: Path, number: int, writer: str) -> None:
    path = tmp_path / "yard.db"
    open_database(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.execute(f"PRAGMA user_version = {number}")
    before = path.read_bytes()
    with pytest.raises(HomeUnusable) as caught:
        open_database(path)
    assert writer in caught.value.message
    assert "9999" in caught.value.message
    assert __version__ in caught.value.message
    assert "upgrade" in caught.value.hint
    assert path.read_bytes() == before


def test_the_version_that_writes_a_database_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "yard.db"
    for version, number in (("0.1.0", 1000), ("1.2.3", 1_002_003), ("development", 0)):
        monkeypatch.setattr(open_store, "__version__", version)
        open_database(path).close()
        with sqlite3.connect(path) as connection:
            assert connection.execute("PRAGMA user_version").fetchone() == (number,)
