"""Every example is trained for real, and its result is checked."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard import Estimator, Experiment, PyTorch, Run, TensorFlow, Workspace
from support import a_home

ROOT = Path(__file__).parents[2]

# one worker runs them all: their environments are built once, and two trainings at a time are enough for two cores
pytestmark = [pytest.mark.real, pytest.mark.xdist_group("examples"), pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def examples_home() -> Iterator[Path]:
    with a_home() as folder:
        yield folder


@pytest.fixture
def yard(examples_home: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("RUNYARD_HOME", str(examples_home))
    return Workspace()


def trained(yard: Workspace, name: str, experiment: str, folder: Path) -> Run:
    """The run that the example's own submit.py made."""
    script = ROOT / "examples" / name / "submit.py"
    done = subprocess.run([sys.executable, script], cwd=folder, capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    run = next(Experiment(yard, experiment).get_runs())
    assert run.get_status() == "Completed"
    assert run._view["end"]["processes_left"] == 0
    return run


def in_one_process(yard: Workspace, kind: type[Estimator], name: str, **given: object) -> list[float]:
    """The losses of the same script on the same global batches, by one process."""
    project = ROOT / "examples" / name / "project"
    run = Experiment(yard, "alone").submit(
        kind(project, entry_script="train.py", compute_target="local", pip_packages=["scikit-learn"], **given)
    )
    run.wait_for_completion()
    losses: list[float] = run.get_metrics()["loss"]
    return losses


def ranks_agree(run: Run, ranks: int) -> list[float]:
    metrics = run.get_metrics()
    each = [metrics[f"loss_of_rank_{rank}"] for rank in range(ranks)]
    for other in each[1:]:
        assert other == pytest.approx(each[0], rel=1e-5)
    first: list[float] = each[0]
    return first


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


def test_horovod_for_pytorch_agrees_with_one_rank_on_the_same_batches(yard: Workspace) -> None:
    run = trained(yard, "horovod_pytorch", "horovod-pytorch", ROOT)
    losses = ranks_agree(run, 2)
    alone = in_one_process(yard, PyTorch, "horovod_pytorch", distributed_backend="mpi")
    assert losses == pytest.approx(alone, rel=1e-4)
    assert run.get_metrics()["accuracy"] > 0.9


def test_horovod_for_tensorflow_agrees_with_one_rank_on_the_same_batches(yard: Workspace) -> None:
    run = trained(yard, "horovod_tensorflow", "horovod-tensorflow", ROOT)
    losses = ranks_agree(run, 2)
    alone = in_one_process(yard, TensorFlow, "horovod_tensorflow", distributed_backend="mpi")
    assert losses == pytest.approx(alone, rel=1e-4)
    assert run.get_metrics()["accuracy"] > 0.9


def test_a_parameter_server_serves_two_workers(yard: Workspace) -> None:
    run = trained(yard, "tf_parameter_server", "tf-parameter-server", ROOT)
    metrics = run.get_metrics()
    assert len(metrics["steps"]) == 2
    assert sum(metrics["steps"]) >= 300
    assert min(metrics["accuracy"]) > 0.7
    names = run.get_file_names()
    for task in ("ps_0", "worker_0", "worker_1"):
        assert f"azureml-logs/70_driver_log_{task}.txt" in names


def test_tensorflows_own_parameter_server_strategy_trains(yard: Workspace) -> None:
    run = trained(yard, "tf_strategy", "tf-strategy", ROOT)
    assert run.get_metrics()["accuracy"] > 0.85
