"""Open MPI: the hostfile, the command line of `mpirun`, and what it runs as each rank."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from runyard.launch.argv import expand
from runyard.launch.world import RankPlan, World

_PER_RANK = ("RUNYARD_RANK", "OMPI_COMM_WORLD_")  # known in a rank only
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})", re.ASCII)


def ranks(world: World) -> list[RankPlan]:
    """As Open MPI numbers them when it fills one node after the other."""
    found = []
    for node in range(len(world.nodes)):
        for local_rank in range(world.processes_per_node):
            rank = node * world.processes_per_node + local_rank
            variables = {
                "OMPI_COMM_WORLD_RANK": str(rank),
                "OMPI_COMM_WORLD_SIZE": str(world.size),
                "OMPI_COMM_WORLD_LOCAL_RANK": str(local_rank),
                "OMPI_COMM_WORLD_LOCAL_SIZE": str(world.processes_per_node),
                "OMPI_COMM_WORLD_NODE_RANK": str(local_rank),
            }
            found.append(
                RankPlan(rank, "rank", rank, node, local_rank, variables=variables, log_suffix=f"_rank_{rank}")
            )
    return found


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
    """``relay`` is called in place of ssh, with a node's name and a command for it; "" for ranks of this machine only.

    More ranks than cores are welcome: none is bound to a core that another one uses, and those that wait let the
    others work.
    """
    words = [mpirun, "--allow-run-as-root", "-np", str(world.size), "--bind-to", "none"]
    if relay:
        words += [
            "--hostfile",
            str(hostfile_path(root)),
            "--map-by",
            f"ppr:{world.processes_per_node}:node:oversubscribe",
            "--wdir",
            "/",  # there on every machine; each rank goes to its own folder from there
        ]
        words += ["--prtemca", "plm_ssh_agent", relay, "--prtemca", "plm_ssh_no_tree_spawn", "1"]
    else:
        words += ["--host", f"localhost:{world.size}", "--map-by", ":oversubscribe"]
    if (world.size if world.is_on_one_machine else world.processes_per_node) > cores:
        words += ["--mca", "mpi_yield_when_idle", "1"]
    if world.is_on_one_machine:
        # it tells nodes apart by the host's name, takes these for one, and waits for ever
        words += ["--mca", "coll", "^han"]
    # each node has a folder and a file of its own: `mpirun` gives the same words to all
    return [*words, "/bin/sh", "-c", 'exec /bin/sh "$RUNYARD_RUN_FOLDER"/mpi/rank-on-"$RUNYARD_NODE_RANK".sh']


def relay_script(names: Sequence[str], bell: str) -> str:
    """``relay.sh <node> <command…>``: hand the command to the lead's agent, which passes it on to that node's."""
    cases = "".join(f"  {shlex.quote(_host(name))}) node={number} ;;\n" for number, name in enumerate(names))
    return (
        "#!/bin/sh\n"
        "# Called by mpirun in place of ssh.\n"
        'node=$1\nshift\ncase "$node" in\n'
        f"{cases}"
        '  *) echo "no node of this run: $node" >&2; exit 1 ;;\nesac\n'
        f'printf \'run %s %s\\n\' "$node" "$*" 1<>{shlex.quote(bell)}\n'
    )


def _host(name: str) -> str:
    """Without a user: `mpirun` would make an option for ssh of it."""
    return name.rpartition("@")[2]


def rank_script(
    argv: Sequence[str],
    variables: Mapping[str, str],
    *,
    work: str,
    interface: str,
    log_prefix: str,
    exits: str,
    bell: str,
    shared_memory: str,
    tmpdir: str,
) -> str:
    """What `mpirun` starts as every rank of a node: the script, its own log, and a line about how it began and ended.

    ``shared_memory`` is the node's own, or ranks with one number on two nodes of this machine would write into each
    other's segment; what a killed rank leaves there goes with it. ``interface`` is the one by which the other nodes
    reach this one; Open MPI would try all that a machine has.
    """
    words = [shlex.quote(argv[0]), *(_word(argument, variables) for argument in argv[1:])]
    give_back = f"export TMPDIR={shlex.quote(tmpdir)}" if tmpdir else "unset TMPDIR"
    by = f'export OMPI_MCA_btl_tcp_if_include="${{OMPI_MCA_btl_tcp_if_include:-{interface}}}"\n'
    shared = "".join(
        f"export OMPI_MCA_{name}_backing_directory={shlex.quote(shared_memory)}\n" for name in ("btl_sm", "osc_sm")
    )
    return (
        "#!/bin/sh\n"
        "export RUNYARD_RANK=$OMPI_COMM_WORLD_RANK\n"
        f"{give_back}\n{shared if shared_memory else ''}{by if interface else ''}"
        f'exec >> {shlex.quote(log_prefix)}"$RUNYARD_RANK".txt 2>&1 < /dev/null\n'
        f"cd {shlex.quote(work)} || exit 1\n"
        "say() {\n"
        f'  echo "$*" >> {shlex.quote(exits)}\n'
        f"  echo 1<>{shlex.quote(bell)}\n"
        "}\n"
        'say began "$RUNYARD_RANK" $$\n'
        "trap : TERM INT  # the script hears them itself; how it ended is still to be told\n"
        f"{' '.join(words)}\n"
        "status=$?\n"
        'say ended "$RUNYARD_RANK" $status\n'
        "exit $status\n"
    )


def _word(argument: str, variables: Mapping[str, str]) -> str:
    """Quoted for the shell, with only those variables left to it that differ from rank to rank."""
    parts, at = [], 0
    for found in _VARIABLE.finditer(argument):
        name = found.group(1) or found.group(2)
        if name.startswith(_PER_RANK):
            parts += [shlex.quote(_expanded(argument[at : found.start()], variables)), f'"${{{name}}}"']
            at = found.end()
    rest = _expanded(argument[at:], variables)
    return "".join([part for part in parts if part != "''"] + ([shlex.quote(rest)] if rest or not parts else []))


def _expanded(text: str, variables: Mapping[str, str]) -> str:
    known = {name: value for name, value in variables.items() if not name.startswith(_PER_RANK)}
    return expand([text], known)[0]
