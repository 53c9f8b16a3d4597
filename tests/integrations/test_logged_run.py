"""The run that the loggers of frameworks write to."""

from __future__ import annotations

import pickle

import pytest

from runyard import Workspace
from runyard.integrations.logged_run import LoggedRun, log_numbers


def test_a_copy_for_another_process_logs_to_the_same_run(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RUNYARD_RUN_ID", raising=False)
    original = LoggedRun("copied", "first")
    assert (original.run, original.run_id) == (None, None)
    run = original.open()
    copy = pickle.loads(pickle.dumps(original))
    assert copy.run is None
    log_numbers(original.open(), {"loss": 1, "text": "a", "skipped": [1], "flag": True}, 3)
    copy.open().log("accuracy", 0.5)
    assert copy.run_id == run.id
    assert run.get_metrics() == {"loss": 1, "text": "a", "flag": True, "accuracy": 0.5}
    run.complete()


def test_letters_that_experiments_cannot_have_are_replaced(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RUNYARD_RUN_ID", raising=False)
    run = LoggedRun("my project / 1").open("named by the framework")
    assert run.experiment.name.startswith("my-project")
    assert run.name == "named by the framework"
    run.complete()
