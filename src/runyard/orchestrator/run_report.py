"""Reconstructs a run's processes, logs and timeline from its stored files."""

from __future__ import annotations

import re
from dataclasses import replace

from runyard.launch.order import Node, masked_variables, read_order
from runyard.launch.plan import make_world, plan, ports_needed
from runyard.launch.world import RankPlan
from runyard.lifecycle.state import RunState
from runyard.orchestrator.components import Components
from runyard.spec.folder import RunFolder
from runyard.spec.redaction import mask_variable
from runyard.store.runs import RunRecord
from runyard.tracking.logs import log_sizes
from runyard.wire.run_inspection import LogView, PhaseView, ProcessView

_LOCAL_NODE = (Node("local"),)
_DIGITS = re.compile(r"(\d+)")
_TASK_OF_LOG = re.compile(r"70_driver_log_([a-z]+)_(\d+)\.txt")
SNAPSHOT = "Snapshot"  # in a timeline: the start of the snapshot, which ended with the submission
DATA = "Data"  # in a timeline: the start of the data transfer
_PHASES: dict[str, str] = {
    DATA: "data",
    RunState.PREPARING.value: "environment",
    RunState.QUEUED.value: "queue",
    RunState.STARTING.value: "launch",
    RunState.RUNNING.value: "run",
    RunState.CANCEL_REQUESTED.value: "run",
    RunState.FINALIZING.value: "finalize",
}


def processes(components: Components, run_id: str) -> list[ProcessView]:
    """Each process with its exact command and variables; none before the run was started."""
    folder = components.folder(run_id)
    return [
        ProcessView(rank.rank, rank.role, node, list(rank.argv), _masked(rank.variables), _log_name(folder, rank))
        for node, rank in _ranks(folder)
    ]


def _masked(variables: dict[str, str]) -> dict[str, str]:
    """Orders that earlier versions wrote contain secrets in clear."""
    return {name: mask_variable(name, value) for name, value in sorted(variables.items())}


def logs(components: Components, run_id: str) -> list[LogView]:
    folder = components.folder(run_id)
    ranks = {_log_name(folder, rank): (node, rank) for node, rank in _ranks(folder)}
    views = []
    for name, size in sorted(log_sizes(folder.logs).items(), key=lambda item: _natural_key(item[0])):
        node, rank = ranks.get(name, (None, None))
        task = _TASK_OF_LOG.fullmatch(name)
        if rank is not None:
            views.append(LogView(name, size, rank.rank, rank.role, node))
        elif task is not None:
            views.append(LogView(name, size, int(task[2]) if task[1] == "rank" else None, task[1], None))
        else:
            views.append(LogView(name, size, None, name.partition("_")[2].partition("_")[0], None))
    return views


def timeline(record: RunRecord) -> list[PhaseView]:
    """The phases in their order; the last one of an unfinished run has no end."""
    times = sorted((at, state) for state, at in record.timeline.items() if state in _PHASES)
    ends = [at for at, _ in times[1:]] + [record.ended_at]
    phases: list[PhaseView] = []
    if SNAPSHOT in record.timeline:
        phases.append(PhaseView("snapshot", record.timeline[SNAPSHOT], record.created_at))
    for (at, state), end in zip(times, ends):
        phase = _PHASES[state]
        if phases and phases[-1].phase == phase:
            phases[-1] = replace(phases[-1], end=end)
        else:
            phases.append(PhaseView(phase, at, end))
    return phases


def _ranks(folder: RunFolder) -> list[tuple[str, RankPlan]]:
    """(node name, process) of every process, from the order."""
    try:
        order = read_order(folder.order)
    except (OSError, ValueError):
        return []
    nodes = order.nodes or _LOCAL_NODE
    counts = [ports_needed(order.launch, len(nodes), node_rank) for node_rank in range(len(nodes))]
    # the agents choose ports when they start, so the order does not contain them
    ports = [[f"<port of {node.name}>"] * count for node, count in zip(nodes, counts)]
    world = make_world(order, ports)
    return [
        (nodes[node_rank].name, rank)
        for node_rank in range(len(nodes))
        for rank in plan(order.launch, world, node_rank, order.argv, masked_variables(order))
    ]


def _log_name(folder: RunFolder, rank: RankPlan) -> str:
    return folder.driver_log(rank.log_suffix).name


def _natural_key(name: str) -> list[tuple[int, str]]:
    """Sort key that puts rank 10 after rank 9."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in _DIGITS.split(name)]
