"""The ground that a run stands on: this machine with its file system, or hosts that are reached by SSH.

What differs between them is where environments are prepared, which variables a process finds there, and by which names
and numbers the nodes go.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from runyard.compute.registry import LOCAL, Target
from runyard.compute.scheduling.queue import Placement
from runyard.compute.ssh.compute import SshCompute
from runyard.compute.ssh.placeholders import HOST_PATH
from runyard.environments.manager import Prepared
from runyard.environments.requirements import local_files
from runyard.environments.venv import installed_uv
from runyard.launch.order import Node
from runyard.launch.variables import clean
from runyard.orchestrator.components import Rooms
from runyard.spec.json import from_json, to_json
from runyard.spec.launch import Single
from runyard.spec.run import RunSpec
from runyard.store.runs import RunRecord

LOOPBACK = "127.0.0.1"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Ready:
    prepared: Prepared
    mpirun: str = ""  # the program; "" = there is none


def prepare(
    rooms: Rooms, record: RunRecord, say: Say, abandoned: threading.Event, placement: Placement | None = None
) -> Ready:
    """Blocks until the environment is there: on the hosts of the placement, or on all that can be reached."""
    spec = from_json(RunSpec, record.spec)
    compute, folder = rooms.target(record).compute, rooms.folder(record.run_id)
    if isinstance(compute, SshCompute):
        return _on_hosts(compute, spec, record.run_id, say, abandoned, placement)
    prepared = rooms.environments.prepare(
        spec.environment,
        has_gpu=bool(compute.capacity().gpus),
        say=say,
        abandoned=abandoned,
        run_folder=folder.root,
        kit=rooms.kit,
        run_id=record.run_id,
    )
    return Ready(prepared, _mpirun(prepared))


def at_once(rooms: Rooms, spec: RunSpec, say: Say) -> Prepared | None:
    """The environment where it is there already; None: it has to be prepared, on hosts or by a build. Raises
    EnvironmentException for what no environment could be."""
    compute = rooms.targets.get(spec.target).compute
    if isinstance(compute, SshCompute):
        return None
    return rooms.environments.at_once(spec.environment, has_gpu=bool(compute.capacity().gpus), say=say)


def inherited(target: Target) -> Mapping[str, str]:
    """The variables of the machine itself, which every process gets besides the run's own."""
    return {"PATH": HOST_PATH} if isinstance(target.compute, SshCompute) else clean(os.environ)


def gpus(target: Target, placement: Placement) -> tuple[int, ...] | None:
    """Those that the queue gave; None where it is not the queue that gives them, or where there are none."""
    is_ours = target.name == LOCAL or _are_hosts(target)
    return placement.gpus if is_ours and target.compute.capacity().gpus else None


def nodes(target: Target, spec: RunSpec, placement: Placement) -> tuple[Node, ...]:
    if isinstance(target.compute, SshCompute) and target.compute.nodes_are_hosts:
        # their addresses are theirs to say again, when they are asked to start
        hosts = list(target.compute.hosts.items())
        return tuple(Node(hosts[number][0], hosts[number][1].seen_at) for number in placement.nodes)
    if isinstance(spec.launch, Single):
        return ()
    if target.name == LOCAL:
        return (Node(LOCAL, LOOPBACK),)
    return tuple(Node(f"node-{number}", LOOPBACK) for number in placement.nodes)


def numbers(target: Target, placed: Sequence[Node]) -> tuple[int, ...]:
    """Of the nodes in an order: as the queue counts them."""
    if isinstance(target.compute, SshCompute) and target.compute.nodes_are_hosts:
        names = list(target.compute.hosts)
        return tuple(names.index(node.name) for node in placed if node.name in names) or (0,)
    return tuple(int(node.name.rpartition("-")[2]) for node in placed if node.name.startswith("node-")) or (0,)


def _are_hosts(target: Target) -> bool:
    return isinstance(target.compute, SshCompute) and target.compute.nodes_are_hosts


def _on_hosts(
    compute: SshCompute,
    spec: RunSpec,
    run_id: str,
    say: Say,
    abandoned: threading.Event,
    placement: Placement | None,
) -> Ready:
    environment = spec.environment
    wheels = [] if environment.user_managed else local_files(environment.pip)
    answers = compute.prepare(
        to_json(environment),
        run_id=run_id,
        # the Python of the machine that submitted means "the one that is there", on a host that does not have it
        lends_python=bool(environment.interpreter) and os.access(environment.interpreter or "", os.X_OK),
        uv=None if environment.user_managed else Path(installed_uv()),
        files=[Path(wheel) for wheel in wheels],
        say=say,
        abandoned=abandoned,
        numbers=None if placement is None else placement.nodes,
    )
    found = from_json(Prepared, answers[0]["prepared"])
    warnings = dict.fromkeys(w for answer in answers for w in answer["prepared"].get("warnings", ()))
    return Ready(replace(found, warnings=tuple(warnings)), str(answers[0]["mpirun"]))


def _mpirun(prepared: Prepared) -> str:
    """The environment's own Open MPI first: it is what its packages were built for."""
    for folder in prepared.path_entries:
        if (Path(folder) / "mpirun").exists():
            return f"{folder}/mpirun"
    return shutil.which("mpirun") or ""
