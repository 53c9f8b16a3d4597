"""Variables of torch.distributed's env:// method, and those that the service of SDK v1 set for it."""

from __future__ import annotations

from runyard.launch.world import RankPlan, World


def ranks(world: World) -> list[RankPlan]:
    address, port = world.nodes[0].address, world.ports[0][0]
    common = {
        "MASTER_ADDR": address,
        "MASTER_PORT": port,
        "WORLD_SIZE": str(world.size),
        "LOCAL_WORLD_SIZE": str(world.processes_per_node),
        "AZ_BATCHAI_PYTORCH_INIT_METHOD": f"tcp://{address}:{port}",
    }
    if all(node.address.startswith("127.") for node in world.nodes):
        common["GLOO_SOCKET_IFNAME"] = "lo"  # otherwise gloo resolves the host name, which fails on some machines
    plans = []
    for rank, node, local_rank in world.positions():
        variables = {
            **common,
            "RANK": str(rank),
            "LOCAL_RANK": str(local_rank),
            "NODE_RANK": str(node),
            "AZ_BATCHAI_TASK_INDEX": str(rank),
        }
        plans.append(RankPlan(rank, "rank", rank, node, local_rank, variables=variables, log_suffix=f"_rank_{rank}"))
    return plans
