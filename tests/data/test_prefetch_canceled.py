"""A run that is canceled during the prefetch of its data does not keep trees in the cache."""

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


class RemoteStore(FolderStore):
    """A folder that counts as remote."""

    def local_path(self, path: str) -> Path | None:
        return None


@pytest.fixture
def components(tmp_path: Path) -> Iterator[Components]:
    database = open_database(tmp_path / "yard.db")
    stager = Stager(Datastores(database, tmp_path), Cache(tmp_path / "cache"))
    stager.open = lambda name: RemoteStore(tmp_path / "remote")
    (tmp_path / "remote" / "set").mkdir(parents=True)
    (tmp_path / "remote" / "set" / "a").write_text("a")
    targets = SimpleNamespace(get=lambda name: SimpleNamespace(compute=SimpleNamespace(remote_data=None)))
    needed = {"home": tmp_path, "database": database, "runs": RunStore(database), "stager": stager}
    yield Components(**{**dict.fromkeys(Components.__dataclass_fields__), **needed, "targets": targets})
    database.close()


def insert_run(components: Components, *uses: DataUse) -> RunRecord:
    record = RunRecord("run", "e", Life(RunState.PREPARING), clock.now(), spec={"data": [to_json(u) for u in uses]})
    inserted = components.runs.insert(record, {}, {})
    assert inserted is not None
    components.folder("run").root.mkdir(parents=True)
    return inserted


def cancel(components: Components, record: RunRecord) -> None:
    components.runs.save(replace(record, life=Life(RunState.CANCELED)))
    data.discard(components, record)


def cancel_on_report(components: Components) -> Callable[[str], None]:
    """A progress callback that cancels the run at the first message."""

    def report(text: str) -> None:
        record = components.runs.load("run")
        if not record.life.state.is_terminal:
            cancel(components, record)

    return report


def test_trees_are_in_use_until_the_run_ends(components: Components) -> None:
    record = insert_run(components, DataUse("a", "remote", "set"))
    data.prefetch(components, record, lambda text: None, threading.Event())
    assert len(trees_in_use(components.home)) == len(components.stager.prefetched) == 1
    cancel(components, record)
    assert not trees_in_use(components.home)
    assert not components.stager.prefetched


def test_trees_are_released_if_the_run_is_canceled_during_the_prefetch(components: Components) -> None:
    record = insert_run(components, DataUse("a", "remote", "set"))
    data.prefetch(components, record, cancel_on_report(components), threading.Event())
    assert not trees_in_use(components.home)
    assert not components.stager.prefetched


def test_trees_are_released_if_other_data_is_missing(components: Components) -> None:
    record = insert_run(components, DataUse("a", "remote", "set"), DataUse("b", "remote", "nothing"))
    with pytest.raises(UserErrorException):
        data.prefetch(components, record, cancel_on_report(components), threading.Event())
    assert not trees_in_use(components.home)
    assert not components.stager.prefetched
