"""Every example is trained for real, and its result is checked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from examples_support import in_one_process, ranks_agree

from runyard import Experiment, PyTorch, Run, Workspace

ROOT = Path(__file__).parents[2]

# one worker runs them all: their environments are built once, and two trainings at a time are enough for two cores
pytestmark = [pytest.mark.real, pytest.mark.xdist_group("examples"), pytest.mark.timeout(1500)]


def trained(yard: Workspace, name: str, experiment: str, folder: Path) -> Run:
    """The run that the example's own submit.py made."""
    script = ROOT / "examples" / name / "submit.py"
    done = subprocess.run([sys.executable, script], cwd=folder, capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    run = next(Experiment(yard, experiment).get_runs())
    assert run.get_status() == "Completed"
    assert run.end.processes_left == 0
    return run


def test_the_demo_reads_digits(yard: Workspace, tmp_path: Path) -> None:
    run = trained(yard, "digits", "digits", tmp_path)
    assert run.get_metrics()["accuracy"][-1] > 0.95
    assert (tmp_path / "model.pt").stat().st_size > 1000


def test_torch_ddp_agrees_with_one_process_on_the_same_batches(yard: Workspace) -> None:
    run = trained(yard, "torch_ddp", "torch-ddp", ROOT)
    losses = ranks_agree(run, 4)
    assert losses == pytest.approx(in_one_process(yard, PyTorch, "torch_ddp"), rel=1e-4)
    assert run.get_metrics()["accuracy"] > 0.9
    logs = {name for name in run.get_file_names() if "rank" in name}
    assert logs == {f"azureml-logs/70_driver_log_rank_{rank}.txt" for rank in range(4)}


def test_mpi4py_ranks_agree(yard: Workspace) -> None:
    run = trained(yard, "mpi4py_digits", "mpi4py", ROOT)
    ranks_agree(run, 4)
    assert run.get_metrics()["accuracy"] > 0.9


def test_tensorflows_own_parameter_server_strategy_trains(yard: Workspace) -> None:
    run = trained(yard, "tf_strategy", "tf-strategy", ROOT)
    assert run.get_metrics()["accuracy"] > 0.85
