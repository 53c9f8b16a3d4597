"""The public state of a run: end, activity and attempts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from runyard import Experiment
from runyard.sdk.run.details import RunAttempt, RunEnd, attempts_of, end_of
from support import eventually, with_this_python


def test_a_failed_run_has_an_end_with_reason_exit_code_and_traceback(
    experiment: Experiment, project: Callable[..., Path]
) -> None:
    run = experiment.submit(with_this_python(project(train="raise ValueError('no data')")))
    assert run.wait_for_completion(raise_on_error=False)["status"] == "Failed"
    end = run.end
    assert end is not None
    assert (end.reason, end.message, end.exit_code) == ("script failed", "ValueError: no data", 1)
    assert "Traceback" in end.traceback
    assert end.processes_left == 0
    assert (run.activity, run.attempts) == ("", [])
    assert (run.folder / "azureml-logs" / "70_driver_log.txt").is_file()


def test_a_run_has_no_end_and_an_activity_while_it_runs(experiment: Experiment, project: Callable[..., Path]) -> None:
    run = experiment.submit(with_this_python(project(train="import time\ntime.sleep(60)")))
    eventually(lambda: run.get_status() == "Running", "it runs")
    assert run.end is None
    run.cancel()
    run.wait_for_completion()
    assert run.end is not None
    assert run.end.reason == "canceled"


def test_a_view_becomes_an_end_and_attempts() -> None:
    view = {
        "end": {"reason": "node lost", "message": "node n2 is gone", "node": "n2", "rank": 1},
        "attempts": [{"number": 1, "reason": "node lost", "message": "gone", "node": "n2", "ended_at": 1.5}],
    }
    assert end_of(view) == RunEnd("node lost", "node n2 is gone", rank=1, node="n2")
    assert attempts_of(view) == [RunAttempt(1, "node lost", "gone", "n2", 1.5)]
    assert end_of({"end": None}) is None


@pytest.mark.parametrize(("reason", "hint"), [("node lost", "max_attempts"), ("timed out", "max_run"), ("killed", "")])
def test_an_end_has_a_hint_where_a_step_follows_from_its_reason(reason: str, hint: str) -> None:
    assert hint in RunEnd(reason).hint
    assert bool(RunEnd(reason).hint) == bool(hint)
