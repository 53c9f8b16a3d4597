"""Renders the batch script of a run. Pure: the same order gives the same script."""

from __future__ import annotations

import math
import shlex
from pathlib import Path

from runyard.compute.slurm.client import Partition
from runyard.compute.slurm.options import SlurmOptions
from runyard.launch.order import WorkOrder
from runyard.launch.variables import process_tag
from runyard.spec.folder import RunFolder

# The task on each of several nodes. srun ignores an agent that dies (the agents decide the end of a run), and another
# agent has no connection to one that died at its start: the shell that started it writes a file for the others. The
# shell must outlive its agent, which takes its time after SIGTERM.
_TASK = """trap : TERM INT
folder=$1 attempt=$2
shift 2
"$@"
code=$?
[ "$SLURM_NODEID" = 0 ] || folder=$folder/nodes/$SLURM_NODEID
if [ $code -ne 0 ] && mkdir -p "$folder"; then
  echo "{\\"attempt\\": $attempt, \\"evidence\\": \\"its agent ended with exit code $code\\"}" > "$folder/lost.draft"
  mv "$folder/lost.draft" "$folder/lost.json"
fi
exit $code"""
_TIME_LIMIT_MARGIN_S = 120  # the agent stops a run at its limit and records it; Slurm's limit is for a stuck agent


def job_name(order: WorkOrder) -> str:
    """A unique name: the run's id, its home and its attempt."""
    return f"{process_tag(order.run_id, RunFolder(Path(order.folder)))}.{order.attempt}"


def render(
    order: WorkOrder,
    options: SlurmOptions,
    *,
    python: str,
    kit: str,
    partition: Partition | None = None,
    name: str = "",
) -> str:
    """Render the script.

    Args:
        order: The run.
        options: The options of the target.
        python: The interpreter of the agents; the same path must exist on every node.
        kit: The folder for PYTHONPATH of the agents; likewise.
        partition: The partition, if known. It limits the CPUs per node (more processes share them), and decides
            whether a node that an earlier attempt lost can be excluded.
        name: The job's name, if it cannot be derived from the order because its folder is on another machine.
    """
    requested = order.resources.cpus_per_node
    cpus = min(requested, partition.cpus or requested) if partition else requested
    excluded = order.lost_node if partition and partition.nodes > order.resources.nodes else ""
    root = Path(order.folder)
    order_path = RunFolder(root).order
    flags = "\n".join(f"#SBATCH {flag}" for flag in _flags(order, options, cpus, excluded, name or job_name(order)))
    agent = shlex.join([python, "-S", "-m", "runyard.agent.slurm_node", str(order_path)])
    return (
        "#!/bin/sh\n"
        f"{flags}\n\n"
        f"# {order.run_id}, attempt {order.attempt}: an agent on each node starts the processes of the run\n"
        f"if ! [ -x {shlex.quote(python)} ] || ! [ -r {shlex.quote(str(order_path))} ]; then\n"
        f'  echo "$(hostname) cannot read "{shlex.quote(str(order_path))}" or cannot run "{shlex.quote(python)} >&2\n'
        '  echo "the home folder of the yard and its Python must be on a file system that all nodes share" >&2\n'
        "  exit 1\n"
        "fi\n"
        f"export PYTHONPATH={shlex.quote(kit)}\n"
        f"exec {_step(order, cpus)}{agent}\n"
    )


def _flags(order: WorkOrder, options: SlurmOptions, cpus: int, excluded: str, name: str) -> list[str]:
    resources = order.resources
    limit_s = order.max_run_duration_seconds
    return [
        f"--job-name={_word(name)}",
        f"--partition={_word(options.partition)}",
        *([f"--account={_word(options.account)}"] if options.account else []),
        *([f"--qos={_word(options.qos)}"] if options.qos else []),
        *([f"--constraint={_word(options.constraint)}"] if options.constraint else []),
        f"--nodes={resources.nodes}",
        f"--ntasks={resources.nodes}",
        "--ntasks-per-node=1",
        f"--cpus-per-task={cpus}",
        *([f"--mem={math.ceil(resources.memory_gb * 1024)}M"] if resources.memory_gb else []),
        *([f"--gpus-per-node={resources.gpus_per_node}"] if resources.gpus_per_node else []),
        *([f"--time={math.ceil((limit_s + order.grace_s + _TIME_LIMIT_MARGIN_S) / 60)}"] if limit_s else []),
        *([f"--exclude={_word(excluded)}"] if excluded else []),
        # the yard starts the next attempt: it knows how many are allowed, and for which end reasons
        "--no-requeue",
        f"--output={_word(_without_patterns(order.folder))}/slurm/output-{order.attempt}.txt",
        "--open-mode=append",
        f"--chdir={_word(order.folder)}",
        *(_option(option) for option in options.options),
    ]


def _step(order: WorkOrder, cpus: int) -> str:
    """The prefix of the agent's command for several nodes. srun must not end the run for a lost node: the agents decide
    that."""
    if order.resources.nodes == 1:
        return ""
    argv = [
        "srun",
        f"--nodes={order.resources.nodes}",
        f"--ntasks={order.resources.nodes}",
        "--ntasks-per-node=1",
        f"--cpus-per-task={cpus}",
        "--kill-on-bad-exit=0",
        "--wait=0",
        "--mpi=none",
        "--input=none",
        *("/bin/sh", "-c", _TASK, "agent", order.folder, str(order.attempt)),
    ]
    return shlex.join(argv) + " "


def _option(option: str) -> str:
    flag, equals, value = option.partition("=")
    return f"{flag}{equals}{_word(value)}" if equals else flag


def _word(text: str) -> str:
    """Quote for an #SBATCH line, which sbatch parses like a shell, with `#` as a comment."""
    return shlex.quote(text) if text else '""'


def _without_patterns(path: str) -> str:
    return path.replace("%", "%%")
