"""Names of models in a real database: titles, deletion, and homes of earlier versions."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config

from runyard.store import open_store
from runyard.store.database import Database
from runyard.store.model_names import ModelNames, ModelNameTaken, ModelNotFound, next_version
from runyard.store.open_store import create_database, open_database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = create_database(tmp_path / "yard.db")
    yield database
    database.close()


def count_up(database: Database, name: str, *, must_exist: bool = True) -> int:
    with database.write() as connection:
        return next_version(connection, name, must_exist=must_exist)


def test_a_deleted_name_is_free_and_its_numbers_are_not_used_again(database: Database) -> None:
    names = ModelNames(database)
    names.add("my-net-1", "my net", "about", {"a": "b"})
    for name, title in (("other", "my net"), ("my-net-1", "other")):
        with pytest.raises(ModelNameTaken):
            names.add(name, title, None, {})
    assert count_up(database, "my-net-1") == 1
    names.remove("my net", None, lambda connection, version: None)
    with pytest.raises(ModelNotFound):
        names.get("my net")
    with pytest.raises(ModelNotFound):
        count_up(database, "my-net-1")
    again = names.add("my-net-1", "my net", None, {})
    assert (again.description, again.tags) == (None, {})
    assert count_up(database, "my-net-1") == 2


def test_a_name_is_renamed_to_one_that_was_deleted(database: Database) -> None:
    names = ModelNames(database)
    for name in ("first", "second"):
        names.add(name, name, None, {})
    assert [count_up(database, "second") for _ in range(3)] == [1, 2, 3]
    names.remove("second", None, lambda connection, version: None)
    assert names.rename("first", "second", "second", lambda connection, version: None).name == "second"
    assert count_up(database, "second") == 4
    assert [name.title for name in names.all()] == ["second"]


def test_names_of_earlier_versions_have_a_title_and_those_without_versions_are_deleted(tmp_path: Path) -> None:
    path, config = tmp_path / "yard.db", Config()
    config.set_main_option("script_location", str(Path(open_store.__file__).parent / "migrations"))
    config.attributes["url"] = f"sqlite:///{path}"
    command.upgrade(config, "0009")
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO model_names VALUES ('gone', 3, 10.0), ('used', 1, 20.0)")
        connection.execute(
            "INSERT INTO models (name, version, registration_id, tags, properties, stage, digest, size, created_at, "
            "changed_at, metrics, data, details) "
            "VALUES ('used', 1, 'r', '{}', '{}', 'none', 'd', 1, 20.0, 20.0, '{}', '[]', '{}')"
        )
    connection.close()
    database = open_database(path)
    names = ModelNames(database).all()
    assert [(name.name, name.title, name.changed_at) for name in names] == [("used", "used", 20.0)]
    assert count_up(database, "gone", must_exist=False) == 4
    assert ModelNames(database).get("gone").name == "gone"
    database.close()
