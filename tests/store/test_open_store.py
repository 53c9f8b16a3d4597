from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy.exc import OperationalError

from runyard.errors import StoreCorrupted
from runyard.store import open_store
from runyard.store.open_store import HEAD, back_up, backup_path, migrate, open_database


def shape(path: Path) -> dict[str, str]:
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")
        return {name: " ".join((sql or "").split()) for name, sql in rows if name != "alembic_version"}


def test_a_new_database_has_the_tables_that_the_migrations_make(tmp_path: Path) -> None:
    open_database(tmp_path / "new.db").close()
    sqlite3.connect(tmp_path / "migrated.db").close()
    migrate(tmp_path / "migrated.db")
    assert shape(tmp_path / "new.db") == shape(tmp_path / "migrated.db")


def test_the_head_is_that_of_the_newest_migration() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(open_store.__file__).parent / "migrations"))
    assert ScriptDirectory.from_config(config).get_current_head() == HEAD


def test_a_first_start_that_was_killed_leaves_nothing_half_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(connection: object) -> None:
        create_all(connection)
        raise KeyboardInterrupt

    create_all = open_store.schema.metadata.create_all
    monkeypatch.setattr(open_store.schema.metadata, "create_all", killed)
    with pytest.raises(KeyboardInterrupt):
        open_database(tmp_path / "yard.db")
    assert shape(tmp_path / "yard.db") == {}
    monkeypatch.undo()
    open_database(tmp_path / "yard.db").close()


def test_a_database_is_the_owners_alone(tmp_path: Path) -> None:
    open_database(tmp_path / "yard.db").close()
    assert (tmp_path / "yard.db").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("damage", ["no database", "torn page"])
def test_a_damaged_database_is_named_kept_and_the_way_back_is_told(tmp_path: Path, damage: str) -> None:
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
    assert f"cp {backup_path(path)}" in caught.value.hint
    assert path.read_bytes() == before


def test_following_the_hint_brings_the_yard_back(tmp_path: Path) -> None:
    path = tmp_path / "yard.db"
    open_database(path).close()
    back_up(path)
    path.write_bytes(b"gone" * 1000)
    with pytest.raises(StoreCorrupted):
        open_database(path)
    path.write_bytes(backup_path(path).read_bytes())
    for beside in tmp_path.glob("yard.db-*"):
        beside.unlink()
    open_database(path).close()


def test_somebody_elses_database_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "yard.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE mine (x)")
    with pytest.raises(StoreCorrupted, match="not a Runyard database"):
        open_database(path)
    assert list(shape(path)) == ["mine"]


def begin_at_the_first_version(path: Path) -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(open_store.__file__).parent / "migrations"))
    config.attributes["url"] = f"sqlite:///{path}"
    command.upgrade(config, "0001")


def test_an_old_database_gets_the_parameters_of_its_runs_and_a_change_for_each(tmp_path: Path) -> None:
    path = tmp_path / "yard.db"
    begin_at_the_first_version(path)
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


def test_a_migration_that_does_not_come_through_leaves_the_database_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "yard.db"
    begin_at_the_first_version(path)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE sweeps (in_the_way)")  # what a later step makes
    before = shape(path)
    for _ in range(2):  # the second try begins where the first did
        with pytest.raises(OperationalError, match="table sweeps already exists"):
            open_database(path)
        assert shape(path) == shape(backup_path(path)) == before
        with sqlite3.connect(path) as connection:
            assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [("0001",)]
