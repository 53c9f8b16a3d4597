from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runyard.context.journal import Journal
from runyard.store.database import Database
from runyard.store.schema import metadata
from runyard.tracking.ingest import ingest
from runyard.tracking.metrics import read_metrics


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "yard.db")
    with database.write() as connection:
        metadata.create_all(connection)
    yield database
    database.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@pytest.fixture
def journal(folder: Path) -> Journal:
    return Journal(folder)


@pytest.fixture
def metrics(database: Database, folder: Path) -> Callable[[], dict[str, Any]]:
    """Ingests and returns the metrics of run `r`."""

    def read() -> dict[str, Any]:
        ingest(database, "r", folder)
        return read_metrics(database, ["r"])["r"]

    return read
