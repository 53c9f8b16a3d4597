"""The fast listing of runs returns the same views as the endpoint for one run."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from run_table_support import Runs
from runyard.lifecycle.state import Attempt, End, EndReason, Life, RunState
from runyard.lifecycle.warning import RunWarning, incomplete
from runyard.run_table.views import read_views
from runyard.server.responses import encode_json, run_view
from runyard.spec.folder import HomeFolder
from runyard.store.runs import SWEEP, RunRecord, RunStore

FAILED = End(EndReason.SCRIPT_FAILED, "ValueError: bad", exit_code=1, traceback="Traceback…\n", last_lines="a\nb")
RECORDS = {
    "minimal": RunRecord("r", "digits", Life(), 1.5),
    "ended": RunRecord(
        "r",
        "digits",
        Life(RunState.FAILED, FAILED),
        1.5,
        parent_id="p",
        root_id="p",
        type="azureml.scriptrun",
        name="näme",
        spec={"script": "train.py", "arguments": ["--lr", 0.1, "é"], "max_attempts": 2},
        target="local",
        snapshot_id="ab",
        environment_key="cd",
        timeline={"Running": 2.5, "Failed": 3.25},
        warnings=(RunWarning("careful"), incomplete("outputs/ is incomplete")),
        submitted_by="ann",
        started_at=2.5,
        ended_at=3.25,
    ),
    "canceling": RunRecord("r", "digits", Life(RunState.CANCEL_REQUESTED, End(EndReason.CANCELED, "stop")), 1.0),
    "queued": RunRecord("r", "digits", Life(RunState.QUEUED), 1.0, target="local", timeline={"Queued": 7.5}),
    "retried": RunRecord(
        "r", "digits", Life(RunState.RUNNING, earlier_attempts=(Attempt(FAILED, 4.5), Attempt(FAILED))), 1.0
    ),
    "not a number": RunRecord("r", "digits", Life(), 1.0, spec={"arguments": [float("nan"), "NaN", float("inf")]}),
    "invalid Unicode": RunRecord("r", "digits", Life(), 1.0, spec={"arguments": ["\udcff"]}),
    "sweep": RunRecord("r", "digits", Life(RunState.RUNNING, is_sweep=True), 1.0, type=SWEEP),
}


class FakeConductor:
    """The part of a conductor that views need."""

    def __init__(self, runs: RunStore, home: Path) -> None:
        self.components = SimpleNamespace(runs=runs, folder=HomeFolder(home).run)

    def activity(self, record: RunRecord) -> tuple[str, float | None]:
        text, since = self.activity_of(record.run_id, record.life.state.value, record.target)
        return text, record.timeline.get("Queued") if record.life.state is RunState.QUEUED else since

    def activity_of(self, run_id: str, status: str, target: str | None) -> tuple[str, float | None]:
        return ("", None) if RunState(status).is_terminal else (f"{run_id} on {target}", 9.5)


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
@pytest.mark.parametrize("labels", [{}, {"a": "1", "b": None}], ids=["no labels", "labels"])
def test_a_listed_run_equals_its_view(runs: Runs, record: RunRecord, labels: dict[str, Any], tmp_path: Path) -> None:
    store = RunStore(runs.database)
    assert store.insert(record, labels, labels) is not None
    conductor: Any = FakeConductor(store, tmp_path)
    single = json.loads(encode_json(run_view(conductor, store.load("r"))))
    with runs.database.read() as connection:
        numbers = store.find_numbers(include_children=True)
        (listed,) = read_views(connection, numbers, HomeFolder(tmp_path).runs, conductor.activity_of)
    assert json.loads(listed) == single


def test_views_are_listed_newest_first_with_their_own_labels(runs: Runs, tmp_path: Path) -> None:
    store = RunStore(runs.database)
    for number in range(5):
        store.insert(RunRecord(f"r-{number}", "digits", Life(), 1.0), {"n": str(number)}, {})
    conductor: Any = FakeConductor(store, tmp_path)
    with runs.database.read() as connection:
        numbers = store.find_numbers(limit=3)
        views = read_views(connection, numbers, HomeFolder(tmp_path).runs, conductor.activity_of)
    assert [(view["run_id"], view["tags"]) for view in map(json.loads, views)] == [
        (f"r-{number}", {"n": str(number)}) for number in (4, 3, 2)
    ]
