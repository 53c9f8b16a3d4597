"""The TCP port that MLflow's client needs: open while a run with the client is active, and only then."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runyard import Experiment, Run, ScriptRunConfig, Workspace
from runyard.client.connection import Connection
from support import a_home, eventually, stop_yard, with_this_python

pytestmark = pytest.mark.real

WAITING = """
import os, sys, time
import mlflow
mlflow.log_metric("first", 1.0)
while not os.path.exists(sys.argv[1]): time.sleep(0.02)
mlflow.log_metric("last", 2.0)
"""


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A separate yard: the other tests of this folder open the port of theirs."""
    with a_home() as folder:
        monkeypatch.setenv("RUNYARD_HOME", str(folder))
        for name in [name for name in os.environ if name.startswith("MLFLOW_TRACKING_")]:
            monkeypatch.delenv(name)  # MLflow's client has set them in an earlier test, and the yard would inherit them
        yield folder


def address() -> Any:
    return Connection().get("/api/studio")


def without_mlflow(project: Path, folder: Path) -> ScriptRunConfig:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    config = with_this_python(project)
    config.run_config.environment.python.interpreter_path = str(folder / "bin" / "python")
    return config


def test_a_run_without_mlflow_opens_no_port(
    experiment: Experiment, project: Callable[..., Path], tmp_path: Path
) -> None:
    script = "import os\nprint([name for name in os.environ if name.startswith('MLFLOW_TRACKING_')])"
    run = experiment.submit(without_mlflow(project(train=script), tmp_path / "venv"))
    run.wait_for_completion()
    assert address() is None
    assert "[]" in run.get_details_with_logs()["logFiles"]["azureml-logs/70_driver_log.txt"]


def test_the_port_is_open_while_a_run_with_mlflow_is_active(
    home: Path, experiment: Experiment, project: Callable[..., Path], tmp_path: Path
) -> None:
    """The next yard listens on the same port, because the script knows it."""
    gate = tmp_path / "gate"
    run = experiment.submit(with_this_python(project(train=WAITING), arguments=[str(gate)]))
    eventually(lambda: "first" in run.get_metrics(), "the script logs")
    port = address()["port"]
    stop_yard(home, signal.SIGKILL)
    assert address()["port"] == port
    gate.touch()
    run.wait_for_completion()
    assert run.get_metrics() == {"first": 1.0, "last": 2.0}
    eventually(lambda: address() is None, "the yard stops listening")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    assert not (home / "studio.json").exists()


def test_a_port_that_a_user_requested_stays_open(
    home: Path, workspace: Workspace, experiment: Experiment, project: Callable[..., Path]
) -> None:
    run = experiment.submit(with_this_python(project(train="import mlflow\nmlflow.log_metric('a', 1)")))
    uri = workspace.get_mlflow_tracking_uri(with_auth=False)
    run.wait_for_completion()
    other: Run = experiment.submit(with_this_python(project(train="pass")))
    other.wait_for_completion()
    eventually(lambda: not json.loads((home / "studio.json").read_text())["runs"], "no run needs the port")
    assert workspace.get_mlflow_tracking_uri(with_auth=False) == uri
    assert address() is not None
