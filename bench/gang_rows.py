"""Start of two ranks, throughput of Horovod, and the time to detect the death of a rank."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.rounds import measure_rounds
from bench.row import Goal, Row, Size, not_measured
from bench.sandbox import Sandbox, script_config
from runyard import Environment, Estimator, Experiment, Mpi, PyTorch, ScriptRunConfig
from runyard.errors import RunyardException
from runyard.sdk.training.distributed import PyTorchConfiguration

_FIRST_LINE = """\
import time; now = time.monotonic()
import os, sys
rank = os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ.get("RANK", "0")
with open(sys.argv[1] + rank, "w") as mark:
    mark.write(repr(now))
"""
_DIES = """\
import os, sys, time
if os.environ["RANK"] == "1":
    time.sleep(0.5)
    with open(sys.argv[1], "w") as mark:
        mark.write(repr(time.monotonic()))
    os._exit(3)
time.sleep(600)
"""
_TRAINING = """\
import sys, time
import horovod.torch as hvd
import torch
hvd.init()
torch.set_num_threads(1)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
optimizer = hvd.DistributedOptimizer(
    torch.optim.SGD(model.parameters(), lr=0.01), named_parameters=model.named_parameters()
)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
x, y = torch.randn(128, 256), torch.randint(0, 10, (128,))
def step():
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
for _ in range(10):
    step()
began, steps = time.monotonic(), int(sys.argv[2])
for _ in range(steps):
    step()
if hvd.rank() == 0:
    with open(sys.argv[1], "w") as mark:
        mark.write(repr(steps / (time.monotonic() - began)))
"""
_MPI = "2 MPI ranks to their first line"
_TORCH = "2 torch.distributed processes to their first line"
_HOROVOD = "Horovod training on 2 ranks, steps per second"


def two_ranks(sandbox: Sandbox, size: Size) -> Iterator[Row]:
    folder = sandbox.project("two-ranks", train=_FIRST_LINE)
    mark = sandbox.root / "rank"
    experiment = sandbox.experiment("two-ranks")
    if not size.downloads:
        yield not_measured(_MPI, "it needs packages from an index")
    else:
        yield from _by_mpi(experiment, folder, mark, size)
    gang = script_config(folder, "train.py", mark)
    _by_torch_variables(gang)

    def ours() -> float:
        return _first_lines(mark, lambda: experiment.submit(gang).wait_for_completion())

    def bare() -> float:
        command = [sys.executable, "train.py", str(mark)]
        variables = [{"RANK": "0"}, {"RANK": "1"}]
        return _first_lines(mark, lambda: _all(subprocess.Popen(command, cwd=folder, env=env) for env in variables))

    contenders = {"bare": bare, "ours": ours}
    torchrun = _torchrun(experiment, folder, mark) if size.peers and size.downloads else None
    if torchrun is not None:
        contenders["torchrun"] = torchrun
    times = measure_rounds(contenders, min(size.rounds, 9), rest_s=0.1)
    peers = {"torchrun": times["torchrun"]} if torchrun else {}
    notes = (
        (f"goal: at most 1/15 of torchrun; measured: 1/{times['torchrun'].median / times['ours'].median:.0f}",)
        if peers
        else ()
    )
    yield Row(_TORCH, times["ours"], ("two bare processes", times["bare"]), peers=peers, notes=notes)


def horovod(sandbox: Sandbox, size: Size) -> Iterator[Row]:
    if not size.downloads:
        yield not_measured(_HOROVOD, "it needs packages from an index")
        return
    folder = sandbox.project("horovod", train=_TRAINING)
    mark, steps = sandbox.root / "throughput", size.scaled(400)
    experiment = sandbox.experiment("horovod")
    try:
        estimator = PyTorch(
            folder,
            entry_script="train.py",
            script_params={str(mark): str(steps)},
            compute_target="local",
            distributed_training=Mpi(2),
        )
        python = _python_of(experiment, estimator)
    except RunyardException as error:
        yield not_measured(_HOROVOD, error.message.splitlines()[0])
        return

    def ours() -> float:
        experiment.submit(estimator).wait_for_completion()
        return float(mark.read_text())

    def bare() -> float:
        subprocess.run(_mpirun(python, folder, mark, str(steps)), cwd=folder, check=True, capture_output=True)
        return float(mark.read_text())

    rates = measure_rounds({"bare": bare, "ours": ours}, min(size.rounds, 7))
    yield Row(_HOROVOD, rates["ours"], ("bare `mpirun`", rates["bare"]), Goal(0.98, relative=True, at_least=True), "/s")


def death(sandbox: Sandbox, size: Size) -> Iterator[Row]:
    folder = sandbox.project("death", train=_DIES)
    mark = sandbox.root / "death.mark"
    experiment = sandbox.experiment("death")
    gang = script_config(folder, "train.py", mark)
    _by_torch_variables(gang)

    def ours() -> float:
        details = experiment.submit(gang).wait_for_completion(raise_on_error=False)
        assert details["error"]["error"]["details"]["rank"] == 1
        return time.monotonic() - float(mark.read_text())

    times = measure_rounds({"ours": ours}, min(size.rounds, 9))
    yield Row("from a rank's death to the end of the run and of the other rank", times["ours"], goal=Goal(2.0))


def _by_mpi(experiment: Experiment, folder: Path, mark: Path, size: Size) -> Iterator[Row]:
    estimator = Estimator(
        folder,
        entry_script="train.py",
        script_params={str(mark): ""},
        compute_target="local",
        distributed_training=Mpi(2),
    )
    try:
        python = _python_of(experiment, estimator)
    except RunyardException as error:
        yield not_measured(_MPI, error.message.splitlines()[0])
        return

    def ours() -> float:
        return _first_lines(mark, lambda: experiment.submit(estimator).wait_for_completion())

    def bare() -> float:
        command = _mpirun(python, folder, mark)
        return _first_lines(mark, lambda: subprocess.run(command, cwd=folder, check=True, capture_output=True))

    times = measure_rounds({"bare": bare, "ours": ours}, min(size.rounds, 15), rest_s=0.1)
    more = (times["ours"].median - times["bare"].median) * 1e3
    note = f"goal: at most 120 ms more than bare `mpirun`; measured: {more:.0f} ms more"
    yield Row(_MPI, times["ours"], ("bare `mpirun`", times["bare"]), notes=(note,))


def _python_of(experiment: Experiment, estimator: Any) -> Path:
    """Return the interpreter of the run's environment, which the bare contender uses as well."""
    run = experiment.submit(estimator)
    run.wait_for_completion()
    key = experiment.workspace.connection.get(f"/api/runs/{run.id}")["environment_key"]
    return experiment.workspace.home / "environments" / key / "bin" / "python"


def _mpirun(python: Path, folder: Path, *arguments: object) -> list[str]:
    mpirun = [str(python.with_name("mpirun")), "--allow-run-as-root", "--bind-to", "none", "--oversubscribe"]
    return [*mpirun, "-np", "2", str(python), "train.py", *map(str, arguments)]


def _torchrun(experiment: Experiment, folder: Path, mark: Path) -> Any:
    """Return a contender with torch's launcher in an environment built by the yard; None if that fails."""
    try:
        python = _python_of(
            experiment, PyTorch(folder, entry_script="train.py", script_params={str(mark): ""}, compute_target="local")
        )
    except RunyardException:
        return None
    command = [str(python), "-m", "torch.distributed.run", "--nproc-per-node", "2", "train.py", str(mark)]
    return lambda: _first_lines(mark, lambda: subprocess.run(command, cwd=folder, check=True, capture_output=True))


def _by_torch_variables(config: ScriptRunConfig) -> None:
    config.run_config.framework, config.run_config.communicator = "PyTorch", "Gloo"
    config.run_config.pytorch = PyTorchConfiguration("Gloo", 2)
    assert isinstance(config.run_config.environment, Environment)


def _first_lines(mark: Path, work: Any) -> float:
    """Return the seconds until both scripts have reached their first line."""
    started_at = time.monotonic()
    work()
    return max(float(Path(f"{mark}{rank}").read_text()) for rank in range(2)) - started_at


def _all(processes: Any) -> None:
    for process in list(processes):
        process.wait()
