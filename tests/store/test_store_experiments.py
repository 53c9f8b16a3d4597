"""Experiments: unique names and titles, also in homes of earlier versions, which could have duplicates."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError

from runyard.store import open_store, schema
from runyard.store.database import Database, sqlite_url
from runyard.store.documents import EXPERIMENT, Documents
from runyard.store.experiments import ExperimentStore
from runyard.store.open_store import open_database

BEFORE_TITLES = "0010"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = open_database(tmp_path / "yard.db")
    yield database
    database.close()


@pytest.fixture
def experiments(database: Database) -> ExperimentStore:
    return ExperimentStore(database)


def test_a_title_is_created_once_by_threads_that_start_at_once(experiments: ExperimentStore) -> None:
    clients = 8
    for number in range(20):
        barrier = threading.Barrier(clients)

        def create(
            client: int, title: str = f"my experiment {number}", barrier: threading.Barrier = barrier
        ) -> str | None:
            barrier.wait(timeout=60)
            record = experiments.create(title, {"tags": {"client": str(client)}})
            return None if record is None else record.name

        with ThreadPoolExecutor(clients) as pool:
            names = [name for name in pool.map(create, range(clients)) if name is not None]
        assert len(names) == 1
    assert len(experiments.all()) == 20


def test_two_databases_of_one_file_do_not_create_a_title_twice(experiments: ExperimentStore, tmp_path: Path) -> None:
    """As two processes would, which share no lock: the check is part of the transaction that writes."""
    other = Database(tmp_path / "yard.db")
    stores = [experiments, ExperimentStore(other)]
    for number in range(20):
        barrier = threading.Barrier(2)

        def create(store: ExperimentStore, title: str = f"t {number}", barrier: threading.Barrier = barrier) -> bool:
            barrier.wait(timeout=60)
            return store.create(title, {}) is not None

        with ThreadPoolExecutor(2) as pool:
            assert sorted(pool.map(create, stores)) == [False, True]
    other.close()


def test_the_table_refuses_a_second_experiment_of_a_title(database: Database, experiments: ExperimentStore) -> None:
    experiments.create("my digits", {})
    with pytest.raises(IntegrityError), database.write() as connection:
        connection.execute(insert(schema.experiments).values(name="other", title="my digits", created_at=1.0))


def test_an_experiment_is_created_with_its_document_or_not_at_all(
    database: Database, experiments: ExperimentStore
) -> None:
    with pytest.raises(Exception, match="not JSON serializable"):
        experiments.create("digits", {"tags": object()})
    assert experiments.all() == []
    record = experiments.create("digits", {"tags": {"a": "b"}})
    assert record is not None
    document = Documents(database).get(EXPERIMENT, record.name)
    assert document is not None
    assert document.content == {"tags": {"a": "b"}}


def test_a_name_whose_title_another_experiment_has_gets_a_numbered_title(experiments: ExperimentStore) -> None:
    experiments.add("letters")
    assert experiments.rename("letters", "digits")
    assert experiments.add("digits").title == "digits (2)"
    assert experiments.add("digits").title == "digits (2)"
    assert not experiments.rename("digits", "digits")
    assert experiments.rename("letters", "digits")
    by_title = experiments.find_by_title("digits")
    assert by_title is not None
    assert by_title.name == "letters"


def test_a_title_whose_name_a_renamed_experiment_has_gets_another_name(experiments: ExperimentStore) -> None:
    experiments.add("digits")
    experiments.rename("digits", "letters")
    records = [experiments.create("digits", {}), experiments.create("digits", {})]
    assert [record and record.name for record in records] == ["digits-", None]


def test_duplicates_of_an_old_home_are_numbered_by_age(tmp_path: Path) -> None:
    path = tmp_path / "yard.db"
    sqlite3.connect(path).close()
    migrate_to(path, BEFORE_TITLES)
    rows = [  # name, title, time
        ("b", "my digits", 2.0),
        ("a", "my digits", 1.0),
        ("c", "my digits", 3.0),
        ("taken", "my digits (2)", 4.0),
        ("native", None, 5.0),
        ("renamed", "native", 6.0),
    ]
    with sqlite3.connect(path) as connection:
        for name, title, created_at in rows:
            connection.execute("INSERT INTO experiments (name, created_at) VALUES (?, ?)", (name, created_at))
            content = {"tags": {"of": name}} if title is None else {"title": title, "tags": {"of": name}}
            connection.execute(
                "INSERT INTO documents (kind, id, owner, content, created_at) VALUES ('experiment', ?, ?, ?, ?)",
                (name, name, json.dumps(content), created_at),
            )
        content = json.dumps({"title": "everything", "tags": {}})
        connection.execute(  # MLflow's default experiment, renamed before its first run
            "INSERT INTO documents (kind, id, owner, content, created_at) VALUES ('experiment', ?, ?, ?, ?)",
            ("Default", "Default", content, 7.0),
        )
    connection.close()
    database = open_database(path)
    assert {record.name: record.title for record in ExperimentStore(database).all()} == {
        "a": "my digits",
        "b": "my digits (3)",
        "c": "my digits (4)",
        "taken": "my digits (2)",
        "native": "native",
        "renamed": "native (2)",
        "Default": "everything",
    }
    contents = {document.id: document.content for document in Documents(database).find(EXPERIMENT)}
    assert contents["b"] == {"tags": {"of": "b"}}
    assert all("title" not in content for content in contents.values())
    database.close()


def migrate_to(path: Path, version: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(open_store.__file__).parent / "migrations"))
    config.attributes["url"] = sqlite_url(path)
    command.upgrade(config, version)
