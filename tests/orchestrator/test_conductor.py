"""The conductor with a real store and queue, without starting anything."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from runyard.compute.base import Capacity
from runyard.compute.scheduling.machine_pool import YardMachine
from runyard.compute.scheduling.queue import Queue
from runyard.environments.manager import Prepared
from runyard.lifecycle import events as on
from runyard.lifecycle.state import Life, RunState
from runyard.orchestrator.conductor import Conductor
from runyard.spec.folder import RunFolder
from runyard.spec.json import to_json
from runyard.spec.run import RunSpec
from runyard.store.open_store import open_database
from runyard.store.runs import RunRecord, RunStore

READY = Prepared(key="known", python="/usr/bin/python")


class TestYard:
    """The components that decisions need."""

    __test__ = False

    def __init__(self, home: Path) -> None:
        self.database = open_database(home / "yard.db")
        self.runs = RunStore(self.database)
        self.home = home
        self.open()

    def open(self) -> None:
        self.queue = Queue(YardMachine("local", Capacity(2, 8.0)))
        target = SimpleNamespace(queue=self.queue, name="local")
        components: Any = SimpleNamespace(
            runs=self.runs, target=lambda _: target, folder=lambda run_id: RunFolder(self.home / "runs" / run_id)
        )
        self.conductor = Conductor(components)
        self.started: list[str] = []
        self.prepared: list[str] = []
        self.conductor._start = lambda record: self.started.append(record.run_id)  # type: ignore[method-assign]
        self.conductor._prepare = lambda record, _: self.prepared.append(record.run_id)  # type: ignore[method-assign]

    def admit(self, run_id: str) -> RunRecord:
        record = RunRecord(
            run_id=run_id,
            experiment="digits",
            life=Life(),
            created_at=1.0,
            spec=to_json(RunSpec(script="train.py")),
            target="local",
        )
        return self.conductor.admit(record, on.Submitted(), {}, {}, READY)

    def wait_for_actions(self) -> None:
        for pool in (self.conductor._acting, self.conductor._preparing):
            pool.shutdown(wait=True)


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[TestYard]:
    yard = TestYard(tmp_path)
    yield yard
    yard.conductor.close()
    yard.database.close()


def test_a_run_with_an_existing_environment_is_decided_to_its_start_and_saved_once(yard: TestYard) -> None:
    assert [yard.admit(name).life.state for name in ("a", "b", "c")] == [
        RunState.STARTING,
        RunState.STARTING,
        RunState.QUEUED,
    ]
    assert yard.runs.load("a").version == 0
    assert yard.queue.runs() == ["a", "b", "c"]
    yard.wait_for_actions()
    assert sorted(yard.started) == ["a", "b"]


def test_a_repeated_submission_is_the_same_run_and_enqueued_once(yard: TestYard) -> None:
    first = yard.admit("a")
    assert yard.admit("a").number == first.number
    assert yard.queue.runs() == ["a"]


def test_a_run_that_could_not_be_saved_leaves_the_queue(yard: TestYard, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OperationalError("insert", {}, sqlite3.OperationalError("database or disk is full"))

    with monkeypatch.context() as patch:
        patch.setattr(yard.runs, "insert", full)
        with pytest.raises(OperationalError):
            yard.admit("a")
    assert yard.queue.runs() == []
    assert yard.admit("a").life.state is RunState.STARTING


def test_an_enqueued_run_that_was_never_stored_is_removed(yard: TestYard) -> None:
    yard.admit("a")
    yard.queue.enqueue("unknown", RunSpec(script="train.py").resources)
    yard.conductor.post("a", on.CancelRequested())
    yard.conductor.place_waiting(yard.conductor.components.target(yard.runs.load("a")))
    assert yard.queue.runs() == ["a"]


def test_a_run_that_was_not_started_is_enqueued_again_after_a_restart(yard: TestYard) -> None:
    yard.admit("a")
    yard.wait_for_actions()
    yard.open()  # the next yard, with an empty queue
    yard.conductor.recover()
    assert yard.runs.load("a").life.state is RunState.PREPARING
    yard.wait_for_actions()
    assert (yard.started, yard.prepared) == ([], ["a"])
