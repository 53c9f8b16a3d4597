from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from run_table_support import Runs
from runyard.store.open_store import open_database


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    database = open_database(tmp_path / "yard.db")
    yield Runs(database)
    database.close()
