"""Lineage across all tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert

from runyard.errors import UserErrorException
from runyard.spec.data import DatasetUse, DataUse
from runyard.spec.dataset import FILE, DatasetDefinition, Source
from runyard.store import lineage, schema
from runyard.store.database import Database
from runyard.store.datasets import Dataset, DatasetStore
from runyard.store.lineage import Lineage
from runyard.store.open_store import open_database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = open_database(tmp_path / "yard.db")
    yield database
    database.close()


def add(database: Database, table: Any, **values: Any) -> None:
    defaults = {
        column.name: {} if "JSON" in str(column.type) else 0 if "CHAR" not in str(column.type) else ""
        for column in table.columns
        if not column.nullable and column.autoincrement is not True
    }
    with database.write() as connection:
        connection.execute(insert(table).values(**{**defaults, **values}))


def add_run(database: Database, run_id: str, *uses: DataUse, root: str | None = None) -> None:
    parent = root if root != run_id else None
    add(
        database,
        schema.runs,
        run_id=run_id,
        experiment="e",
        root_id=root or run_id,
        parent_id=parent,
        state="Completed",
    )
    DatasetStore(database).record_uses(run_id, uses)


def add_dataset(database: Database, name: str | None, path: str, digest: str, run_id: str | None = None) -> Dataset:
    definition = DatasetDefinition(FILE, (Source("blobs", path),))
    if name is None:
        return DatasetStore(database).save(definition, digest, 1, 1)
    dataset = Dataset("", name, None, definition, digest, 1, 1, run_id=run_id)
    return DatasetStore(database).register(dataset, create_new_version=True)


def use(dataset: Dataset, digest: str, name: str = "data") -> DataUse:
    return DataUse(name, "blobs", "x", dataset=DatasetUse(dataset.dataset_id, dataset.name, dataset.version, digest))


def edges(graph: Lineage) -> set[str]:
    label = {node: facts["label"] for node, facts in graph.nodes.items()}
    return {f"{label[edge.source]} {edge.kind} {label[edge.target]}" for edge in graph.edges.values()}


def test_from_raw_data_to_the_service(database: Database) -> None:
    raw = add_dataset(database, "raw", "raw/", "d1")
    add_run(database, "clean", use(raw, "d1"), DataUse("out", "blobs", "cleaned", mode="upload"))
    cleaned = add_dataset(database, "cleaned", "cleaned/", "d2", run_id="clean")
    add_run(database, "train", use(cleaned, "d2"), DataUse("words", "blobs", "words.txt"))
    add_run(database, "other", use(raw, "d1"))
    add(database, schema.models, name="m", version=1, registration_id="r1", run_id="train")
    add(database, schema.models, name="m", version=2, registration_id="r2", details={"made_of": "m:1"})
    add(database, schema.service_versions, name="s", version=1, models=[["m", 2]])
    add(database, schema.services, name="s", state="Healthy")
    line = {
        "raw:1 used clean",
        "clean wrote blobs/cleaned",
        "clean saved cleaned:1",
        "cleaned:1 used train",
        "blobs/words.txt used train",
        "train registered m:1",
        "m:1 made of m:2",
        "m:2 served s",
    }
    without_output = line - {"clean wrote blobs/cleaned"}
    assert edges(lineage.trace_model(database, "m:1")) == without_output
    assert edges(lineage.trace_model(database, "m")) == without_output
    assert edges(lineage.trace_run(database, "train")) == without_output
    assert edges(lineage.trace_run(database, "clean")) == line - {"blobs/words.txt used train"}
    assert edges(lineage.trace_dataset(database, "cleaned")) == without_output - {"blobs/words.txt used train"}
    assert "raw:1 used other" in edges(lineage.trace_dataset(database, "raw:1"))


def test_data_written_by_one_run_and_read_by_another(database: Database) -> None:
    add_run(database, "first", DataUse("out", "blobs", "there", mode="upload"))
    add_run(database, "second", DataUse("in", "blobs", "there"))
    line = {"first wrote blobs/there", "blobs/there used second"}
    assert edges(lineage.trace_run(database, "first")) == edges(lineage.trace_run(database, "second")) == line


def test_an_edge_shows_if_the_data_was_the_registered_content(database: Database) -> None:
    dataset = add_dataset(database, "mnist", "mnist/", "d1")
    add_run(database, "same", use(dataset, "d1"))
    add_run(database, "other", use(dataset, "d2"))
    graph = lineage.trace_dataset(database, dataset.dataset_id)
    assert {edge.target: edge.same for edge in graph.edges.values()} == {"run:same": True, "run:other": False}


def test_runs_that_used_the_content_before_registration_are_found(database: Database) -> None:
    add_run(database, "early", use(add_dataset(database, None, "mnist/", "d1"), "d1"))
    add_dataset(database, "mnist", "mnist/", "d1")
    assert edges(lineage.trace_dataset(database, "mnist")) == {"mnist:1 used early"}
    assert edges(lineage.trace_run(database, "early")) == {"blobs/mnist/ used early"}


def test_a_sweep_is_traced_with_its_children(database: Database) -> None:
    dataset = add_dataset(database, "mnist", "mnist/", "d1")
    add_run(database, "sweep", root="sweep")
    add_run(database, "sweep_0", use(dataset, "d1"), root="sweep")
    graph = lineage.trace_run(database, "sweep")
    assert graph.start == ["run:sweep"]
    assert edges(graph) == {"sweep led sweep_0", "mnist:1 used sweep_0"}


def test_unknown_objects_are_errors(database: Database) -> None:
    add_dataset(database, "mnist", "mnist/", "d1")
    with pytest.raises(UserErrorException, match="no dataset 'mnits'"):
        lineage.trace_dataset(database, "mnits")
    with pytest.raises(UserErrorException, match="no version 3"):
        lineage.trace_dataset(database, "mnist:3")
    with pytest.raises(UserErrorException, match="no model 'm'"):
        lineage.trace_model(database, "m")
