"""Secrets of runs on Slurm: in a file that the agent deletes before the script starts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from runyard import PyTorchConfiguration, Run, Secret, Workspace
from secret_search import command_lines_with, files_with, responses_with
from support import eventually

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("slurm")]
VALUE = "opensesame-on-slurm"
DIGEST = hashlib.sha256(VALUE.encode()).hexdigest()
SCRIPT = """
import hashlib, os, sys, time
print(hashlib.sha256(os.environ['HF_TOKEN'].encode()).hexdigest(), flush=True)
while len(sys.argv) > 1 and not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
"""


def test_a_secret_reaches_the_processes_of_two_nodes_and_stays_in_no_file(
    workspace: Workspace, submit: Callable[..., Run], home: Path, tmp_path: Path
) -> None:
    workspace.secrets.set("hf-token", VALUE)
    gate = tmp_path / "go"
    variables = {"HF_TOKEN": Secret("hf-token"), "DATABASE_URL": f"postgres://ana:{VALUE}@db/runs"}
    job = PyTorchConfiguration("gloo", process_count=2, node_count=2)
    run = submit(SCRIPT, gate, job=job, environment_variables=variables)
    logs = [run.folder / "azureml-logs" / f"70_driver_log_rank_{rank}.txt" for rank in range(2)]
    eventually(lambda: [path.read_text() for path in logs if path.exists()] == [f"{DIGEST}\n"] * 2, "both ranks print")
    assert files_with(VALUE, home) == []
    assert list((home / "deliveries").iterdir()) == []
    assert command_lines_with(VALUE) == []
    assert responses_with(VALUE, home, run.id) == []
    gate.touch()
    assert run.wait_for_completion()["status"] == "Completed"
    assert files_with(VALUE, home) == []


def test_a_canceled_job_that_never_started_leaves_no_delivery(
    workspace: Workspace, submit: Callable[..., Run], home: Path
) -> None:
    workspace.secrets.set("hf-token", VALUE)
    run = submit(SCRIPT, environment_variables={"HF_TOKEN": Secret("hf-token")}, job=_all_nodes())
    waiting = submit(SCRIPT, environment_variables={"HF_TOKEN": Secret("hf-token")}, job=_all_nodes())
    waiting.cancel()
    for ended in (run, waiting):
        ended.wait_for_completion(raise_on_error=False)
    eventually(lambda: not list((home / "deliveries").iterdir()), "the deliveries are deleted")
    assert files_with(VALUE, home) == []


def _all_nodes() -> PyTorchConfiguration:
    return PyTorchConfiguration("gloo", process_count=4, node_count=4)
