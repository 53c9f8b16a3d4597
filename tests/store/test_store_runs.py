"""The records of runs under several hands at once."""

from __future__ import annotations

from pathlib import Path

from runyard.lifecycle.state import Life
from runyard.store.open_store import open_database
from runyard.store.runs import RunRecord, RunStore


def test_every_change_is_a_version_of_its_own_also_between_reading_and_saving(tmp_path: Path) -> None:
    database = open_database(tmp_path / "yard.db")
    runs = RunStore(database)
    read = runs.insert(RunRecord("r-1", "digits", Life(), 1.0), {}, {})
    assert read is not None
    runs.set_tags("r-1", {"area": "mnist"})
    told = runs.load("r-1").version
    runs.save(read)
    assert runs.load("r-1").version > told  # whoever follows the run would else not be told of the change
    database.close()


def test_the_next_number_is_that_of_a_new_run_and_none_of_one_that_is_there(tmp_path: Path) -> None:
    database = open_database(tmp_path / "yard.db")
    runs = RunStore(database)
    assert runs.next_number("r-1") == 1
    made = runs.insert(RunRecord("r-1", "digits", Life(), 1.0), {}, {})
    assert made is not None
    assert made.number == 1
    assert (runs.next_number("r-1"), runs.next_number("r-2")) == (None, 2)
    database.close()
