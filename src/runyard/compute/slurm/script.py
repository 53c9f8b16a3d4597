"""The batch job of a run, as text. Pure: the same order gives the same script."""

from __future__ import annotations

import math
import re
import shlex
from pathlib import Path

from runyard.compute.slurm.client import Partition
from runyard.compute.slurm.options import SlurmOptions
from runyard.launch.order import WorkOrder
from runyard.launch.variables import process_tag
from runyard.spec.folder import RunFolder

_LOST = re.compile(r"node lost \((.+)\)")
_END_MARGIN_S = 120  # the agent ends a run after its time, and says so; Slurm's own limit is for an agent that cannot


def job_name(order: WorkOrder) -> str:
    """No other job has it: the run's id, which home it is of, and its attempt."""
    return f"{process_tag(order.run_id, RunFolder(Path(order.folder)))}.{order.attempt}"


def render(
    order: WorkOrder,
    options: SlurmOptions,
    *,
    python: str,
    kit: str,
    there: Partition | None = None,
    name: str = "",
) -> str:
    """``python`` and ``kit`` (the folder for PYTHONPATH) run the agents, and must be the same on every node.

    ``there`` is the partition, where it is known: more processes than its nodes have CPUs take turns, and a node that
    was lost is avoided where there are others. ``name`` is the job's, where its folder goes by another name than here.
    """
    asked = order.resources.cpus_per_node
    cpus = min(asked, there.cpus or asked) if there else asked
    lost = _LOST.fullmatch(order.retried_for)
    avoided = lost[1] if lost and there and there.nodes > order.resources.nodes else ""
    root = Path(order.folder)
    order_path = RunFolder(root).order
    flags = "\n".join(f"#SBATCH {flag}" for flag in _flags(order, options, cpus, avoided, name or job_name(order)))
    agent = shlex.join([python, "-S", "-m", "runyard.agent.slurm_node", str(order_path)])
    return (
        "#!/bin/sh\n"
        f"{flags}\n\n"
        f"# {order.run_id}, attempt {order.attempt}: an agent on each node starts the processes of the run\n"
        f"if ! [ -x {shlex.quote(python)} ] || ! [ -r {shlex.quote(str(order_path))} ]; then\n"
        f'  echo "$(hostname) cannot read "{shlex.quote(str(order_path))}" or cannot run "{shlex.quote(python)} >&2\n'
        '  echo "the home folder of the yard and its Python must be on a file system that every node has" >&2\n'
        "  exit 1\n"
        "fi\n"
        f"export PYTHONPATH={shlex.quote(kit)}\n"
        f"exec {_step(order, cpus)}{agent}\n"
    )


def _flags(order: WorkOrder, options: SlurmOptions, cpus: int, avoided: str, name: str) -> list[str]:
    asked = order.resources
    limit_s = order.max_run_duration_seconds
    return [
        f"--job-name={_word(name)}",
        f"--partition={_word(options.partition)}",
        *([f"--account={_word(options.account)}"] if options.account else []),
        *([f"--qos={_word(options.qos)}"] if options.qos else []),
        *([f"--constraint={_word(options.constraint)}"] if options.constraint else []),
        f"--nodes={asked.nodes}",
        f"--ntasks={asked.nodes}",
        "--ntasks-per-node=1",
        f"--cpus-per-task={cpus}",
        *([f"--mem={math.ceil(asked.memory_gb * 1024)}M"] if asked.memory_gb else []),
        *([f"--gpus-per-node={asked.gpus_per_node}"] if asked.gpus_per_node else []),
        *([f"--time={math.ceil((limit_s + order.grace_s + _END_MARGIN_S) / 60)}"] if limit_s else []),
        *([f"--exclude={_word(avoided)}"] if avoided else []),
        # another attempt is the yard's to begin: it knows how many there may be, and for which reasons
        "--no-requeue",
        f"--output={_word(_without_patterns(order.folder))}/slurm/output-{order.attempt}.txt",
        "--open-mode=append",
        f"--chdir={_word(order.folder)}",
        *(_option(option) for option in options.options),
    ]


def _step(order: WorkOrder, cpus: int) -> str:
    """One node: the batch script is there already. A node that is lost is the agents' to judge, not srun's."""
    if order.resources.nodes == 1:
        return ""
    words = [
        "srun",
        f"--nodes={order.resources.nodes}",
        f"--ntasks={order.resources.nodes}",
        "--ntasks-per-node=1",
        f"--cpus-per-task={cpus}",
        "--kill-on-bad-exit=0",
        "--wait=0",
        "--mpi=none",
        "--input=none",
    ]
    return shlex.join(words) + " "


def _option(option: str) -> str:
    flag, equals, value = option.partition("=")
    return f"{flag}{equals}{_word(value)}" if equals else flag


def _word(text: str) -> str:
    """sbatch reads these lines with a shell's quotes, and takes `#` for a comment."""
    return shlex.quote(text) if text else '""'


def _without_patterns(path: str) -> str:
    return path.replace("%", "%%")
