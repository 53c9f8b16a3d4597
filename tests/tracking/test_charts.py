from __future__ import annotations

from pathlib import Path

import numpy as np

from runyard.context.journal import Journal
from runyard.store.database import Database
from runyard.tracking.charts import Window, read_series
from runyard.tracking.ingest import ingest


def test_the_last_value_of_a_long_series_is_in_its_chart(database: Database, folder: Path, journal: Journal) -> None:
    for i in range(20_000):
        journal.log("m", i % 100)
    journal.log("m", 50.5)
    ingest(database, "r", folder)
    whole = read_series(database, "r", "m", Window(), most=100)
    assert len(whole) <= 101
    assert (whole.values[-1], whole.next) == (50.5, 20_001)
    since = read_series(database, "r", "m", Window(), most=100, after=10_000)
    assert since.values[-1] == 50.5


def test_points_without_steps_lie_where_they_were_logged(database: Database, folder: Path, journal: Journal) -> None:
    for i in range(20_000):
        journal.log("m", float(i))
    ingest(database, "r", folder)
    whole = read_series(database, "r", "m", Window(), most=100)
    assert whole.steps[-1] == 19_999
    assert np.abs(whole.steps - whole.values).max() < 500  # the thinned ones nearly
    part = read_series(database, "r", "m", Window("step", 5000, 5010), most=100)
    assert part.steps.tolist() == part.values.tolist() == list(range(4999, 5012))
    since = read_series(database, "r", "m", Window(), most=100, after=19_990)
    assert since.steps.tolist() == list(range(19_990, 20_000))


def test_steps_that_were_given_stay_as_they_are(database: Database, folder: Path, journal: Journal) -> None:
    for i in range(10):
        journal.log("m", float(i), step=i * 100)
    ingest(database, "r", folder)
    assert read_series(database, "r", "m", Window(), most=100).steps.tolist() == list(range(0, 1000, 100))
