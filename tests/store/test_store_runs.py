"""Run records with concurrent changes."""

from __future__ import annotations

from pathlib import Path

from runyard.lifecycle.state import Life
from runyard.store.open_store import open_database
from runyard.store.runs import RunRecord, RunStore


def test_a_change_between_reading_and_saving_increments_the_version_too(tmp_path: Path) -> None:
    database = open_database(tmp_path / "yard.db")
    runs = RunStore(database)
    record = runs.insert(RunRecord("r-1", "digits", Life(), 1.0), {}, {})
    assert record is not None
    runs.set_tags("r-1", {"area": "mnist"})
    tagged_version = runs.load("r-1").version
    runs.save(record)
    assert runs.load("r-1").version > tagged_version  # otherwise clients that follow the run would miss the change
    database.close()


def test_the_next_number_is_none_for_an_existing_run(tmp_path: Path) -> None:
    database = open_database(tmp_path / "yard.db")
    runs = RunStore(database)
    assert runs.next_number("r-1") == 1
    record = runs.insert(RunRecord("r-1", "digits", Life(), 1.0), {}, {})
    assert record is not None
    assert record.number == 1
    assert (runs.next_number("r-1"), runs.next_number("r-2")) == (None, 2)
    database.close()
