"""What a run was, told from what was kept of it: its processes, its logs, where its time went."""

from __future__ import annotations

import re
from dataclasses import replace

from runyard.launch.order import Node, read_order
from runyard.launch.plan import plan, ports_needed, world_of
from runyard.launch.world import RankPlan
from runyard.lifecycle.state import RunState
from runyard.orchestrator.components import Rooms
from runyard.spec.folder import RunFolder
from runyard.store.runs import RunRecord
from runyard.tracking.logs import log_sizes
from runyard.wire.run_inspection import LogView, PhaseView, ProcessView

_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)
HERE_ALONE = (Node("local"),)
_HIDDEN = "••••••"
_DIGITS = re.compile(r"(\d+)")
_TASK_OF_LOG = re.compile(r"70_driver_log_([a-z]+)_(\d+)\.txt")
SNAPSHOT = "Snapshot"  # in a timeline: when the freezing of the code began; it ended with the submission
DATA = "Data"  # in a timeline: when the data of the run began to be brought
_PHASES: dict[str, str] = {
    DATA: "data",
    RunState.PREPARING.value: "environment",
    RunState.QUEUED.value: "queue",
    RunState.STARTING.value: "launch",
    RunState.RUNNING.value: "run",
    RunState.CANCEL_REQUESTED.value: "run",
    RunState.FINALIZING.value: "finalize",
}


def processes(rooms: Rooms, run_id: str) -> list[ProcessView]:
    """Each process with the exact command and variables that it got. None before the run was started."""
    folder = rooms.folder(run_id)
    return [
        ProcessView(rank.rank, rank.role, node, list(rank.argv), masked(rank.variables), _log_name(folder, rank))
        for node, rank in _ranks(folder)
    ]


def masked(variables: dict[str, str]) -> dict[str, str]:
    """A page that is shown around must not show passwords: they are known by the names that people give them."""
    return {name: _HIDDEN if _SECRET.search(name) else value for name, value in sorted(variables.items())}


def logs(rooms: Rooms, run_id: str) -> list[LogView]:
    folder = rooms.folder(run_id)
    of_log = {_log_name(folder, rank): (node, rank) for node, rank in _ranks(folder)}
    found = []
    for name, size in sorted(log_sizes(folder.logs).items(), key=lambda item: _natural(item[0])):
        node, rank = of_log.get(name, (None, None))
        task = _TASK_OF_LOG.fullmatch(name)
        if rank is not None:
            found.append(LogView(name, size, rank.rank, rank.role, node))
        elif task is not None:
            found.append(LogView(name, size, int(task[2]) if task[1] == "rank" else None, task[1], None))
        else:
            found.append(LogView(name, size, None, name.partition("_")[2].partition("_")[0], None))
    return found


def timeline(record: RunRecord) -> list[PhaseView]:
    """The phases in their order; the last one of a run that goes on has no end yet."""
    times = sorted((at, state) for state, at in record.timeline.items() if state in _PHASES)
    ends = [at for at, _ in times[1:]] + [record.ended_at]
    found: list[PhaseView] = []
    if SNAPSHOT in record.timeline:
        found.append(PhaseView("snapshot", record.timeline[SNAPSHOT], record.created_at))
    for (at, state), end in zip(times, ends):
        phase = _PHASES[state]
        if found and found[-1].phase == phase:
            found[-1] = replace(found[-1], end=end)
        else:
            found.append(PhaseView(phase, at, end))
    return found


def _ranks(folder: RunFolder) -> list[tuple[str, RankPlan]]:
    """(the node's name, the process) of every process, as the agents' orders have them."""
    try:
        order = read_order(folder.order)
    except (FileNotFoundError, ValueError):
        return []
    nodes = order.nodes or HERE_ALONE
    counts = [ports_needed(order.launch, len(nodes), node_rank) for node_rank in range(len(nodes))]
    # ports are chosen by the agents at the start, and are no part of what was ordered
    ports = [[f"<port of {node.name}>"] * count for node, count in zip(nodes, counts)]
    world = world_of(order, ports)
    return [
        (nodes[node_rank].name, rank)
        for node_rank in range(len(nodes))
        for rank in plan(order.launch, world, node_rank, order.argv, order.variables)
    ]


def _log_name(folder: RunFolder, rank: RankPlan) -> str:
    return folder.driver_log(rank.log_suffix).name


def _natural(name: str) -> list[tuple[int, str]]:
    """Rank 10 after rank 9."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in _DIGITS.split(name)]
