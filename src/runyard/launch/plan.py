"""The processes of a run with their commands and variables, as pure functions of launch method and nodes."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Union

from runyard.launch import mpi, parameter_server, torch_ddp
from runyard.launch.argv import expand
from runyard.launch.order import Node, WorkOrder, masked_variables
from runyard.launch.world import RankPlan, World
from runyard.spec.folder import RunFolder
from runyard.spec.launch import Launch, Mpi, ParameterServer, Single, TorchDistributed

__all__ = ["RankPlan", "World", "all_ranks", "describe", "make_world", "node_variables", "plan", "ports_needed"]

LOCAL_NODES = (Node("node-0"),)


def plan(
    launch: Launch, world: World, node_rank: int, argv: Sequence[str], variables: Mapping[str, str]
) -> list[RankPlan]:
    """The processes of one node, in order of rank."""
    return [_complete(rank, world, argv, variables) for rank in all_ranks(launch, world) if rank.node == node_rank]


def all_ranks(launch: Launch, world: World) -> list[RankPlan]:
    """All processes of the run, with only the variables that differ between them."""
    if isinstance(launch, ParameterServer):
        return parameter_server.ranks(launch, world)
    if isinstance(launch, TorchDistributed):
        return torch_ddp.ranks(world)
    if isinstance(launch, Mpi):
        return mpi.ranks(world)
    return [RankPlan(0, "rank", 0, 0, 0)]


def ports_needed(launch: Launch, node_count: int, node_rank: int) -> int:
    if isinstance(launch, ParameterServer):
        return parameter_server.ports_needed(launch, node_count, node_rank)
    return 0 if isinstance(launch, Single) or node_rank else 1


def make_world(order: WorkOrder, ports: Sequence[Sequence[str]], hosts: tuple[str, ...] = ()) -> World:
    return World(order.nodes or LOCAL_NODES, order.processes_per_node, tuple(map(tuple, ports)), hosts)


def describe(orders: Union[WorkOrder, Sequence[WorkOrder]]) -> str:
    """Commands and variables of all processes as text. Ports are placeholders: they are reserved at the start."""
    orders = [orders] if isinstance(orders, WorkOrder) else list(orders)
    nodes = orders[0].nodes or LOCAL_NODES
    ports = [_port_names(orders[0].launch, nodes, node_rank) for node_rank in range(len(nodes))]
    world = make_world(orders[0], ports)
    lines = []
    if isinstance(orders[0].launch, Mpi):
        root = RunFolder(Path(orders[0].folder)).root
        relay = mpi.relay_path(root) if len(nodes) > 1 else ""
        command = mpi.command(orders[0].mpirun or "mpirun", world, root=root, relay=relay, cores=os.cpu_count() or 1)
        lines += ["# on " + nodes[0].name, shlex.join(command), "", "# hostfile"]
        lines += [*mpi.hostfile(world).splitlines(), ""]
    for order in orders:
        folder = RunFolder(Path(order.folder))
        for rank in plan(order.launch, world, order.node_rank, order.argv, masked_variables(order)):
            lines.append(f"# {rank.title} on {world.nodes[rank.node].name} ({world.nodes[rank.node].address})")
            lines.append(f"cd {shlex.quote(str(folder.work))}")
            lines += [f"  {shlex.quote(f'{name}={value}')}" for name, value in sorted(rank.variables.items())]
            lines.append(f"  {shlex.join(rank.argv)}")
            lines += [f"  >> {shlex.quote(str(folder.driver_log(rank.log_suffix)))}", ""]
    return "\n".join(lines)


def _complete(rank: RankPlan, world: World, argv: Sequence[str], variables: Mapping[str, str]) -> RankPlan:
    all_variables = {**variables, **rank.variables, "RUNYARD_RANK": str(rank.rank)}
    if len(world.nodes) > 1 or rank.log_suffix:
        all_variables.update(node_variables(world, rank.node))
    return replace(rank, argv=(*argv[:1], *expand(argv[1:], all_variables)), variables=all_variables)


def node_variables(world: World, node_rank: int) -> dict[str, str]:
    """Variables that all processes of a node share."""
    variables = {
        "AZUREML_CR_NODE_RANK": str(node_rank),
        "RUNYARD_NODE_RANK": str(node_rank),
        "AZ_BATCHAI_MPI_MASTER_NODE": world.nodes[0].address,
        "AZ_BATCHAI_JOB_MASTER_NODE_IP": world.nodes[0].address,
        "AZ_BATCH_HOST_LIST": ",".join(node.address for node in world.nodes),
    }
    if len(world.nodes) > 1 and world.ports[0]:
        variables["AZ_BATCH_MASTER_NODE"] = f"{world.nodes[0].address}:{world.ports[0][0]}"
    return variables


def _port_names(launch: Launch, nodes: Sequence[Node], node_rank: int) -> list[str]:
    count = ports_needed(launch, len(nodes), node_rank)
    name = nodes[node_rank].name
    return [f"<port on {name}>" if count == 1 else f"<port {i} on {name}>" for i in range(count)]
