from __future__ import annotations

from typing import Annotated, Any, Optional

import typer

from runyard.cli.command import Command, new_app
from runyard.cli.commands.run import seconds
from runyard.cli.follow import print_status
from runyard.cli.formatting import count_text, short_duration
from runyard.cli.run_lookup import Json, print_json
from runyard.cli.table import print_table
from runyard.client.connection import Connection
from runyard.errors import UserErrorException

app = new_app(no_args_is_help=True)
_COMPUTES = "/api/computes"


def complete_compute(incomplete: str) -> list[str]:
    """For the shell. A yard that does not run is not started for the sake of a Tab."""
    connection = Connection()
    names = [view["name"] for view in connection.get(_COMPUTES)] if connection.is_running() else []
    return [name for name in names if name.startswith(incomplete)]


Name = Annotated[str, typer.Argument(metavar="NAME", help="The target's name.", autocompletion=complete_compute)]


@app.callback()
def compute() -> None:
    """Add machines for runs, look at them, try them, or remove them."""


@app.command(cls=Command)
def add(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="How runs will call it: a letter, then letters, digits, '-'.")
    ],
    hosts: Annotated[
        Optional[list[str]], typer.Argument(metavar="HOST", help="With --ssh: user@host, or a name in ssh_config.")
    ] = None,
    slurm: Annotated[bool, typer.Option("--slurm", help="A partition of a Slurm cluster.")] = False,
    ssh: Annotated[bool, typer.Option("--ssh", help="Hosts that you can log in to.")] = False,
    kind: Annotated[str, typer.Option(metavar="KIND", help="Another kind, such as one of an installed package.")] = "",
    partition: Annotated[str, typer.Option(metavar="NAME", help="Slurm: which partition.")] = "",
    login: Annotated[
        Optional[str], typer.Option(metavar="USER@HOST", help="Slurm: its login node, when it is not this machine.")
    ] = None,
    account: Annotated[Optional[str], typer.Option(metavar="NAME", help="Slurm: who pays.")] = None,
    qos: Annotated[Optional[str], typer.Option(metavar="NAME", help="Slurm: quality of service.")] = None,
    constraint: Annotated[
        Optional[str], typer.Option(metavar="TEXT", help="Slurm: features that nodes must have.")
    ] = None,
    options: Annotated[
        Optional[list[str]],
        typer.Option(
            "--option",
            metavar="OPTION",
            help="Slurm: an additional sbatch flag, --option=--exclusive. --kind: key=value. Repeatable.",
        ),
    ] = None,
    key: Annotated[
        Optional[str], typer.Option(metavar="FILE", help="SSH: the private key, if not ssh's own choice.")
    ] = None,
    slots: Annotated[
        Optional[int], typer.Option(metavar="N", help="SSH: how many CPUs of a host runs may use.")
    ] = None,
    folder: Annotated[
        Optional[str],
        typer.Option(metavar="PATH", help="SSH, login node: Runyard's folder there (default: ~/.runyard-host)."),
    ] = None,
) -> None:
    """Add a target: a Slurm partition, or hosts with SSH. It is looked at first; what cannot work is refused."""
    from runyard import ComputeTarget, SlurmCompute, SshCompute, Workspace

    if [slurm, ssh, bool(kind)].count(True) != 1:
        raise UserErrorException(
            "choose one of --slurm, --ssh and --kind",
            hint=f"runyard compute add {name} --slurm --partition main, or runyard compute add {name} --ssh user@host",
        )
    slurm_options = {"--partition": partition, "--login": login, "--account": account, "--qos": qos}
    if kind:
        _refuse("--kind", {"HOST": hosts, "--key": key, "--slots": slots, "--folder": folder, **slurm_options})
        _report_added(ComputeTarget.attach(Workspace(), name, kind=kind, options=_key_values(options or [])))
        return
    if slurm:
        _refuse("--slurm", {"HOST": hosts, "--key": key, "--slots": slots})
        if not partition:
            raise UserErrorException("--slurm needs a --partition", hint="sinfo lists them")
        configuration = SlurmCompute.attach_configuration(
            partition, login, account, qos, constraint, options or (), folder
        )
    else:
        _refuse("--ssh", {**slurm_options, "--constraint": constraint, "--option": options})
        if not hosts:
            raise UserErrorException(
                "--ssh needs at least one host", hint=f"runyard compute add {name} --ssh user@host"
            )
        configuration = SshCompute.attach_configuration(hosts, key, folder, slots)
    _report_added(ComputeTarget.attach(Workspace(), name, configuration))


@app.command("list", cls=Command)
def list_computes(as_json: Json = False) -> None:
    """List the targets that runs can name."""
    found = Connection().get(_COMPUTES)
    if as_json:
        print_json(found)
        return
    print_table(
        ("NAME", "KIND", "CPUS", "GPUS", "RUNS", "WHERE"),
        [
            (
                view["name"],
                view["kind"],
                str(view["status"].get("cpus", "")),
                str(len(view["status"].get("gpus", ()))),
                str(len(_runs(view))),
                _where(view),
            )
            for view in found
        ],
        right=("CPUS", "GPUS", "RUNS"),
    )


@app.command(cls=Command)
def show(name: Name, as_json: Json = False) -> None:
    """Show what a target is, and who uses it."""
    view = Connection().get(f"{_COMPUTES}/{name}")
    if as_json:
        print_json(view)
        return
    status = view["status"]
    rows = {
        "kind": view["kind"],
        "where": _where(view),
        "a node": ", ".join(_of_node(status)),
        **{
            key: " ".join(map(str, value)) if isinstance(value, list) else str(value)
            for key, value in view["configuration"].items()
            if isinstance(value, (str, int, list)) and value not in ("", [], None) and not _is_detail(value)
        },
        "in use by": ", ".join(_runs(view)) or "nobody",
    }
    print(view["name"])
    for key, value in rows.items():
        if value:
            print(f"  {key:<12} {value}")


@app.command("test", cls=Command)
def try_out(
    name: Name,
    patience: Annotated[str, typer.Option(metavar="TIME", help="How long to wait for each: 90s, 10m.")] = "5m",
    as_json: Json = False,
) -> int:
    """Run a tiny job of each way of launching there, on two nodes where there are two, and say what works.

    The exit code is 1 if one of them does not.
    """
    from runyard import ComputeTarget, Workspace
    from runyard.cli.target_selftest import tried

    outcomes = []
    for outcome in tried(ComputeTarget(Workspace(), name), patience_s=seconds(patience) or 300):
        outcomes.append(outcome)
        if not as_json:
            mark = "ok" if outcome.works else "!!"
            print(f"{mark}  {outcome.name:<18} {short_duration(outcome.took_s):>8}  {outcome.text}", flush=True)
    if as_json:
        print_json([outcome.__dict__ for outcome in outcomes])
    broken = [outcome for outcome in outcomes if not outcome.works]
    if broken and broken[0].run_id:
        print_status(f"next     runyard show {broken[0].run_id}")
    return 1 if broken else 0


@app.command(cls=Command)
def remove(name: Name) -> None:
    """Forget a target. The machines, and the runs that were there, stay as they are."""
    Connection().delete(f"{_COMPUTES}/{name}")
    print_status(f"removed {name}")


def _report_added(target: Any) -> None:
    print_status(f"added {target.name}: {_where(target.serialize())}")
    print_status(f"next     runyard compute test {target.name}   runyard run --target {target.name} train.py")


def _key_values(options: list[str]) -> dict[str, str]:
    pairs = [option.partition("=") for option in options]
    for key, separator, _ in pairs:
        if not key or not separator:
            raise UserErrorException(f"--option must be key=value, got {key!r}")
    return {key: value for key, _, value in pairs}


def _refuse(kind: str, said: dict[str, Any]) -> None:
    wrong = [flag for flag, value in said.items() if value]
    if wrong:
        raise UserErrorException(f"{', '.join(wrong)} is not for {kind}", hint="runyard compute add --help")


def _where(view: dict[str, Any]) -> str:
    status, configuration = view["status"], view["configuration"]
    if "partition" in status:
        there = f"partition {status['partition']}"
        if configuration.get("login"):
            there += f" by {configuration['login']}"
        return f"{there}, {count_text(status['node_count'], 'node')}" if status["answers"] else f"{there}; no answer"
    if "hosts" in configuration:
        return ", ".join(configuration["hosts"])
    if "max_nodes" in configuration:
        return f"{count_text(configuration['max_nodes'], 'node')} played on this machine"
    return "this machine" if view["kind"] == "Local" else f"kind {view['kind']}"


def _of_node(status: dict[str, Any]) -> list[str]:
    found = []
    if status.get("cpus"):
        found.append(count_text(status["cpus"], "CPU"))
    if status.get("memory_gb"):
        found.append(f"{status['memory_gb']:g} GB")
    if status.get("gpus"):
        found.append(count_text(len(status["gpus"]), "GPU"))
    return found


def _runs(view: dict[str, Any]) -> list[str]:
    status = view["status"]
    on_nodes = [node["run_id"] for node in status.get("nodes", ()) if node["run_id"]]
    return list(dict.fromkeys([*status.get("runs", ()), *on_nodes, *status.get("waiting", ())]))


def _is_detail(value: Any) -> bool:
    return isinstance(value, list) and any(not isinstance(item, (str, int)) for item in value)
