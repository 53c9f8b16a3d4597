"""Open MPI: the hostfile, the command line of `mpirun`, and the shell scripts that it runs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from runyard.launch.argv import VARIABLE, expand
from runyard.launch.world import RankPlan, World

_PER_RANK = ("RUNYARD_RANK", "OMPI_COMM_WORLD_")  # prefixes of variables that only exist in a rank


def ranks(world: World) -> list[RankPlan]:
    """The ranks as numbered by Open MPI when it fills one node after the other."""
    plans = []
    for rank, node, local_rank in world.positions():
        variables = {
            "OMPI_COMM_WORLD_RANK": str(rank),
            "OMPI_COMM_WORLD_SIZE": str(world.size),
            "OMPI_COMM_WORLD_LOCAL_RANK": str(local_rank),
            "OMPI_COMM_WORLD_LOCAL_SIZE": str(world.processes_per_node),
            "OMPI_COMM_WORLD_NODE_RANK": str(local_rank),
        }
        plans.append(RankPlan(rank, "rank", rank, node, local_rank, variables=variables, log_suffix=f"_rank_{rank}"))
    return plans


def hostfile(world: World) -> str:
    return "".join(f"{_host(node.name)} slots={world.processes_per_node}\n" for node in world.nodes)


def hostfile_path(root: Path) -> Path:
    return root / "mpi/hostfile"


def relay_path(root: Path) -> str:
    return str(root / "mpi/relay.sh")


def rank_path(root: Path, node_rank: int) -> Path:
    return root / f"mpi/rank-on-{node_rank}.sh"


def daemon_path(root: Path, node_rank: int) -> Path:
    return root / f"mpi/daemon-on-{node_rank}.txt"


def command(mpirun: str, world: World, *, root: Path, relay: str, cores: int) -> list[str]:
    """The command line of `mpirun`. Ranks may exceed cores: they are not bound to cores, and yield while waiting.

    Args:
        mpirun: The program.
        world: The nodes of the run.
        root: The run's folder.
        relay: Script that `mpirun` calls instead of ssh, with a node's name and a command; "" for a single machine.
        cores: Number of usable cores of this machine.
    """
    words = [mpirun, "--allow-run-as-root", "-np", str(world.size), "--bind-to", "none"]
    if relay:
        words += [
            "--hostfile",
            str(hostfile_path(root)),
            "--map-by",
            f"ppr:{world.processes_per_node}:node:oversubscribe",
            "--wdir",
            "/",  # exists on every machine; each rank changes to its folder from there
        ]
        words += ["--prtemca", "plm_ssh_agent", relay, "--prtemca", "plm_ssh_no_tree_spawn", "1"]
    else:
        words += ["--host", f"localhost:{world.size}", "--map-by", ":oversubscribe"]
    if (world.size if world.is_on_one_machine else world.processes_per_node) > cores:
        words += ["--mca", "mpi_yield_when_idle", "1"]
    if world.is_on_one_machine:
        # this component identifies nodes by host name, which is the same for all of these, and would wait forever
        words += ["--mca", "coll", "^han"]
    # `mpirun` passes the same command to all nodes, but each node has its own folder and script
    return [*words, "/bin/sh", "-c", 'exec /bin/sh "$RUNYARD_RUN_FOLDER"/mpi/rank-on-"$RUNYARD_NODE_RANK".sh']


def relay_script(names: Sequence[str], wakeup_pipe: str) -> str:
    """``relay.sh <node> <command...>``: pass the command to the lead agent, which sends it to that node's agent."""
    cases = "".join(f"  {shlex.quote(_host(name))}) node={number} ;;\n" for number, name in enumerate(names))
    return (
        "#!/bin/sh\n"
        "# Called by mpirun instead of ssh.\n"
        'node=$1\nshift\ncase "$node" in\n'
        f"{cases}"
        '  *) echo "not a node of this run: $node" >&2; exit 1 ;;\nesac\n'
        f'printf \'run %s %s\\n\' "$node" "$*" 1<>{shlex.quote(wakeup_pipe)}\n'
    )


def _host(name: str) -> str:
    """The name without a user, which `mpirun` would turn into an option for ssh."""
    return name.rpartition("@")[2]


def rank_script(
    argv: Sequence[str],
    variables: Mapping[str, str],
    *,
    work: str,
    interface: str,
    log_prefix: str,
    exits: str,
    wakeup_pipe: str,
    shared_memory: str,
    tmpdir: str,
    secrets: Sequence[str] = (),
) -> str:
    """The shell script that `mpirun` starts as every rank of a node: it runs the script and reports start and end.

    Args:
        argv: The command of a rank.
        variables: Variables to expand in its arguments.
        work: The working directory.
        interface: The network interface at which other nodes reach this one; Open MPI would try all of them.
        log_prefix: Path of the log without the rank and ".txt".
        exits: File to which the script appends "began RANK PID" and "ended RANK STATUS".
        wakeup_pipe: The pipe that wakes the agent.
        shared_memory: Folder for shared memory segments, separate for each node: otherwise ranks of two simulated
            nodes on one machine would write to the same segment. Segments of killed ranks are deleted with it.
        tmpdir: TMPDIR for the script, which must not see that of Open MPI; "" to unset it.
        secrets: Variables that the shell expands, because their values must not be in a file.
    """
    words = [shlex.quote(argv[0]), *(_shell_word(argument, variables, secrets) for argument in argv[1:])]
    restore_tmpdir = f"export TMPDIR={shlex.quote(tmpdir)}" if tmpdir else "unset TMPDIR"
    use_interface = f'export OMPI_MCA_btl_tcp_if_include="${{OMPI_MCA_btl_tcp_if_include:-{interface}}}"\n'
    shared = "".join(
        f"export OMPI_MCA_{name}_backing_directory={shlex.quote(shared_memory)}\n" for name in ("btl_sm", "osc_sm")
    )
    return (
        "#!/bin/sh\n"
        "export RUNYARD_RANK=$OMPI_COMM_WORLD_RANK\n"
        f"{restore_tmpdir}\n{shared if shared_memory else ''}{use_interface if interface else ''}"
        f'exec >> {shlex.quote(log_prefix)}"$RUNYARD_RANK".txt 2>&1 < /dev/null\n'
        f"cd {shlex.quote(work)} || exit 1\n"
        "report() {\n"
        f'  echo "$*" >> {shlex.quote(exits)}\n'
        f"  echo 1<>{shlex.quote(wakeup_pipe)}\n"
        "}\n"
        'report began "$RUNYARD_RANK" $$\n'
        "trap : TERM INT  # the script receives them too; its end must still be reported\n"
        f"{' '.join(words)}\n"
        "status=$?\n"
        'report ended "$RUNYARD_RANK" $status\n'
        "exit $status\n"
    )


def _shell_word(argument: str, variables: Mapping[str, str], secrets: Sequence[str]) -> str:
    """Quote an argument for the shell, which expands only secrets and variables that differ between ranks."""
    parts, start = [], 0
    for match in VARIABLE.finditer(argument):
        name = match.group(1) or match.group(2)
        if name.startswith(_PER_RANK) or name in secrets:
            parts += [shlex.quote(_expand(argument[start : match.start()], variables)), f'"${{{name}}}"']
            start = match.end()
    rest = _expand(argument[start:], variables)
    return "".join([part for part in parts if part != "''"] + ([shlex.quote(rest)] if rest or not parts else []))


def _expand(text: str, variables: Mapping[str, str]) -> str:
    common = {name: value for name, value in variables.items() if not name.startswith(_PER_RANK)}
    return expand([text], common)[0]
