"""Who decides, under several hands at once and after a restart; with a real store and line, and nothing that starts."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from runyard.compute.base import Capacity
from runyard.compute.scheduling.local_queue import LocalQueue
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


class Desk:
    """A yard's rooms with as much in them as deciding needs."""

    def __init__(self, home: Path) -> None:
        self.database = open_database(home / "yard.db")
        self.runs = RunStore(self.database)
        self.home = home
        self.open()

    def open(self) -> None:
        self.queue = LocalQueue(Capacity(2, 8.0))
        target = SimpleNamespace(queue=self.queue, name="local")
        rooms: Any = SimpleNamespace(
            runs=self.runs, target=lambda _: target, folder=lambda run_id: RunFolder(self.home / "runs" / run_id)
        )
        self.conductor = Conductor(rooms)
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

    def settle(self) -> None:
        for pool in (self.conductor._acting, self.conductor._preparing):
            pool.shutdown(wait=True)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    yield desk
    desk.conductor.close()
    desk.database.close()


def test_a_run_whose_environment_is_there_is_decided_to_its_start_and_saved_once(desk: Desk) -> None:
    assert [desk.admit(name).life.state for name in ("a", "b", "c")] == [
        RunState.STARTING,
        RunState.STARTING,
        RunState.QUEUED,
    ]
    assert desk.runs.load("a").version == 0
    assert desk.queue.runs() == ["a", "b", "c"]
    desk.settle()
    assert sorted(desk.started) == ["a", "b"]


def test_the_same_submission_again_is_the_same_run_and_takes_no_second_place(desk: Desk) -> None:
    first = desk.admit("a")
    assert desk.admit("a").number == first.number
    assert desk.queue.runs() == ["a"]


def test_a_run_that_could_not_be_saved_gives_its_place_back(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OperationalError("insert", {}, sqlite3.OperationalError("database or disk is full"))

    with monkeypatch.context() as patch:
        patch.setattr(desk.runs, "insert", full)
        with pytest.raises(OperationalError):
            desk.admit("a")
    assert desk.queue.runs() == []
    assert desk.admit("a").life.state is RunState.STARTING


def test_one_in_line_that_was_never_taken_in_troubles_nobody(desk: Desk) -> None:
    desk.admit("a")
    desk.queue.ask("nobody", RunSpec(script="train.py").resources)
    desk.conductor.post("a", on.CancelRequested())
    desk.conductor.place_waiting(desk.conductor.rooms.target(desk.runs.load("a")))
    assert desk.queue.runs() == ["a"]


def test_a_run_that_nobody_was_asked_to_start_asks_for_its_place_again_after_a_restart(desk: Desk) -> None:
    desk.admit("a")
    desk.settle()
    desk.open()  # the next yard, whose line knows of nobody
    desk.conductor.recover()
    assert desk.runs.load("a").life.state is RunState.PREPARING
    desk.settle()
    assert (desk.started, desk.prepared) == ([], ["a"])
