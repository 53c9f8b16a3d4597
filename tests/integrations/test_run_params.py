"""Parameters that a script records in addition to its arguments."""

from __future__ import annotations

import pytest

from runyard import Experiment, Run, Workspace
from runyard.errors import RunNotFound, UserErrorException


def test_recorded_parameters_are_part_of_the_run(experiment: Experiment, workspace: Workspace) -> None:
    with experiment.start_logging(snapshot_directory=None) as run:
        run.log_params({"lr": 0.1, "net": {"depth": 2, "heads": {}}, "seed": None})
        run.log_params({"lr": 0.2})
        assert run.get_params() == {"lr": "0.2", "net/depth": "2", "net/heads": "{}", "seed": "None"}
    assert Run.get(workspace, run.id).get_params()["lr"] == "0.2"
    query = f"experiment:{experiment.name} params.net/depth=2"
    page = workspace.connection.get("/api/runs/table", query=query)
    assert [row["run_id"] for row in page["rows"]] == [run.id]


@pytest.mark.parametrize("params", [[("lr", 1)], "lr=1", None, {1: 2}, {"": 1}, {"net": {"": 1}}])
def test_parameters_without_a_name_are_refused(experiment: Experiment, params: object) -> None:
    with experiment.start_logging(snapshot_directory=None) as run:
        with pytest.raises(UserErrorException):
            run.log_params(params)
        assert run.get_params() == {}


def test_parameters_of_an_unknown_run_are_refused(workspace: Workspace) -> None:
    with pytest.raises(RunNotFound):
        workspace.connection.patch("/api/runs/nothing/params", {"params": {"lr": "1"}})
    with pytest.raises(RunNotFound):
        workspace.connection.get("/api/runs/nothing/params")


def test_a_script_that_is_tried_by_hand_prints_its_parameters(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RUNYARD_RUN_ID", raising=False)
    Run.get_context().log_params({"net": {"depth": 2}})
    assert "net/depth" in capsys.readouterr().out
