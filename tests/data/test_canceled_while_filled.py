"""A run that is canceled while its data comes holds nothing in the cache afterwards."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from runyard import clock
from runyard.data.cache import Cache, trees_in_use
from runyard.data.folder_store import FolderStore
from runyard.data.registry import Datastores
from runyard.data.staging import Stager
from runyard.errors import UserErrorException
from runyard.lifecycle.state import Life, RunState
from runyard.orchestrator import data
from runyard.orchestrator.components import Components
from runyard.spec.data import DataUse
from runyard.spec.json import to_json
from runyard.store.open_store import open_database
from runyard.store.runs import RunRecord, RunStore


class FarAway(FolderStore):
    def local_path(self, path: str) -> Path | None:
        return None


@pytest.fixture
def components(tmp_path: Path) -> Iterator[Components]:
    database = open_database(tmp_path / "yard.db")
    stager = Stager(Datastores(database, tmp_path), Cache(tmp_path / "cache"))
    stager.open = lambda name: FarAway(tmp_path / "far")
    (tmp_path / "far" / "set").mkdir(parents=True)
    (tmp_path / "far" / "set" / "a").write_text("a")
    here = SimpleNamespace(get=lambda name: SimpleNamespace(compute=None))
    needed = {"home": tmp_path, "database": database, "runs": RunStore(database), "stager": stager}
    yield Components(**{**dict.fromkeys(Components.__dataclass_fields__), **needed, "targets": here})
    database.close()


def a_run(components: Components, *uses: DataUse) -> RunRecord:
    record = RunRecord("run", "e", Life(RunState.PREPARING), clock.now(), spec={"data": [to_json(u) for u in uses]})
    inserted = components.runs.insert(record, {}, {})
    assert inserted is not None
    components.folder("run").root.mkdir(parents=True)
    return inserted


def cancel(components: Components, record: RunRecord) -> None:
    components.runs.save(replace(record, life=Life(RunState.CANCELED)))
    data.forget(components, record)


def canceling_once(components: Components) -> Callable[[str], None]:
    """At the first word: that data has come."""

    def say(text: str) -> None:
        record = components.runs.load("run")
        if not record.life.state.is_terminal:
            cancel(components, record)

    return say


def test_its_trees_are_in_use_until_it_ends(components: Components) -> None:
    record = a_run(components, DataUse("a", "far", "set"))
    data.fill(components, record, lambda text: None, threading.Event())
    assert len(trees_in_use(components.home)) == len(components.stager.prefetched) == 1
    cancel(components, record)
    assert not trees_in_use(components.home)
    assert not components.stager.prefetched


def test_a_run_that_is_canceled_just_as_its_data_has_come_holds_nothing(components: Components) -> None:
    record = a_run(components, DataUse("a", "far", "set"))
    data.fill(components, record, canceling_once(components), threading.Event())
    assert not trees_in_use(components.home)
    assert not components.stager.prefetched


def test_nor_does_one_whose_other_data_did_not_come(components: Components) -> None:
    record = a_run(components, DataUse("a", "far", "set"), DataUse("b", "far", "nothing"))
    with pytest.raises(UserErrorException):
        data.fill(components, record, canceling_once(components), threading.Event())
    assert not trees_in_use(components.home)
    assert not components.stager.prefetched
