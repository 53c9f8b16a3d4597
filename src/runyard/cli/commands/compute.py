"""The `runyard compute` command."""

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
    """Shell completion. Does not start a yard that is not running."""
    connection = Connection()
    names = [view["name"] for view in connection.get(_COMPUTES)] if connection.is_running() else []
    return [name for name in names if name.startswith(incomplete)]


Name = Annotated[str, typer.Argument(metavar="NAME", help="The target's name.", autocompletion=complete_compute)]


@app.callback()
def compute() -> None:
    """Add, show, test or remove compute targets."""


@app.command(cls=Command)
def add(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the target: a letter, then letters, digits and '-'.")
    ],
    hosts: Annotated[
        Optional[list[str]], typer.Argument(metavar="HOST", help="With --ssh: user@host, or a host of ssh_config.")
    ] = None,
    slurm: Annotated[bool, typer.Option("--slurm", help="Add a partition of a Slurm cluster.")] = False,
    ssh: Annotated[bool, typer.Option("--ssh", help="Add hosts that you can log in to with SSH.")] = False,
    kind: Annotated[
        str, typer.Option(metavar="KIND", help="Add a target of another kind, provided by an installed package.")
    ] = "",
    partition: Annotated[str, typer.Option(metavar="NAME", help="Slurm: partition.")] = "",
    login: Annotated[
        Optional[str], typer.Option(metavar="USER@HOST", help="Slurm: login node, if it is not this machine.")
    ] = None,
    account: Annotated[Optional[str], typer.Option(metavar="NAME", help="Slurm: account to charge.")] = None,
    qos: Annotated[Optional[str], typer.Option(metavar="NAME", help="Slurm: quality of service.")] = None,
    constraint: Annotated[Optional[str], typer.Option(metavar="TEXT", help="Slurm: required node features.")] = None,
    options: Annotated[
        Optional[list[str]],
        typer.Option(
            "--option",
            metavar="OPTION",
            help="Slurm: an additional sbatch flag, --option=--exclusive. --kind: key=value. Repeatable.",
        ),
    ] = None,
    key: Annotated[
        Optional[str], typer.Option(metavar="FILE", help="SSH: private key (default: chosen by ssh).")
    ] = None,
    slots: Annotated[
        Optional[int], typer.Option(metavar="N", help="SSH: number of CPUs per host that runs may use.")
    ] = None,
    folder: Annotated[
        Optional[str],
        typer.Option(metavar="PATH", help="SSH and login node: remote folder for Runyard (default: ~/.runyard-host)."),
    ] = None,
) -> None:
    """Add a compute target. It is checked first, and rejected if it cannot work."""
    from runyard import ComputeTarget, SlurmCompute, SshCompute, Workspace

    if [slurm, ssh, bool(kind)].count(True) != 1:
        raise UserErrorException(
            "choose one of --slurm, --ssh and --kind",
            hint=f"runyard compute add {name} --slurm --partition main, or runyard compute add {name} --ssh user@host",
        )
    slurm_options = {"--partition": partition, "--login": login, "--account": account, "--qos": qos}
    if kind:
        _reject_options("--kind", {"HOST": hosts, "--key": key, "--slots": slots, "--folder": folder, **slurm_options})
        _report_added(ComputeTarget.attach(Workspace(), name, kind=kind, options=_key_values(options or [])))
        return
    if slurm:
        _reject_options("--slurm", {"HOST": hosts, "--key": key, "--slots": slots})
        if not partition:
            raise UserErrorException("--slurm requires --partition", hint="list partitions with sinfo")
        configuration = SlurmCompute.attach_configuration(
            partition, login, account, qos, constraint, options or (), folder
        )
    else:
        _reject_options("--ssh", {**slurm_options, "--constraint": constraint, "--option": options})
        if not hosts:
            raise UserErrorException(
                "--ssh requires at least one host", hint=f"runyard compute add {name} --ssh user@host"
            )
        configuration = SshCompute.attach_configuration(hosts, key, folder, slots)
    _report_added(ComputeTarget.attach(Workspace(), name, configuration))


@app.command("list", cls=Command)
def list_computes(as_json: Json = False) -> None:
    """List the compute targets."""
    views = Connection().get(_COMPUTES)
    if as_json:
        print_json(views)
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
            for view in views
        ],
        right=("CPUS", "GPUS", "RUNS"),
    )


@app.command(cls=Command)
def show(name: Name, as_json: Json = False) -> None:
    """Show a target and the runs that use it."""
    view = Connection().get(f"{_COMPUTES}/{name}")
    if as_json:
        print_json(view)
        return
    status = view["status"]
    rows = {
        "kind": view["kind"],
        "where": _where(view),
        "node": ", ".join(_node_resources(status)),
        **{
            key: " ".join(map(str, value)) if isinstance(value, list) else str(value)
            for key, value in view["configuration"].items()
            if isinstance(value, (str, int, list)) and value not in ("", [], None) and not _is_detail(value)
        },
        "used by": ", ".join(_runs(view)) or "no runs",
    }
    print(view["name"])
    for key, value in rows.items():
        if value:
            print(f"  {key:<12} {value}")


@app.command("test", cls=Command)
def run_tests(
    name: Name,
    patience: Annotated[str, typer.Option(metavar="TIME", help="Maximum time per test: 90s, 10m.")] = "5m",
    as_json: Json = False,
) -> int:
    """Run a small job with each launch method, on two nodes if available, and report what works.

    The exit code is 1 if any of them fails.
    """
    from runyard import ComputeTarget, Workspace
    from runyard.cli.target_selftest import run_selftests

    outcomes = []
    for outcome in run_selftests(ComputeTarget(Workspace(), name), timeout_s=seconds(patience) or 300):
        outcomes.append(outcome)
        if not as_json:
            mark = "ok" if outcome.works else "!!"
            print(f"{mark}  {outcome.name:<18} {short_duration(outcome.duration_s):>8}  {outcome.text}", flush=True)
    if as_json:
        print_json([outcome.__dict__ for outcome in outcomes])
    failed = [outcome for outcome in outcomes if not outcome.works]
    if failed and failed[0].run_id:
        print_status(f"next     runyard show {failed[0].run_id}")
    return 1 if failed else 0


@app.command(cls=Command)
def remove(name: Name) -> None:
    """Remove a target. Its machines and past runs are not affected."""
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


def _reject_options(kind: str, options: dict[str, Any]) -> None:
    invalid = [flag for flag, value in options.items() if value]
    if invalid:
        raise UserErrorException(
            f"{', '.join(invalid)} cannot be used with {kind}", hint="see runyard compute add --help"
        )


def _where(view: dict[str, Any]) -> str:
    status, configuration = view["status"], view["configuration"]
    if "partition" in status:
        location = f"partition {status['partition']}"
        if configuration.get("login"):
            location += f" via {configuration['login']}"
        if not status["answers"]:
            return f"{location}; not responding"
        return f"{location}, {count_text(status['node_count'], 'node')}"
    if "hosts" in configuration:
        return ", ".join(configuration["hosts"])
    if "max_nodes" in configuration:
        return f"{count_text(configuration['max_nodes'], 'node')} simulated on this machine"
    return "this machine" if view["kind"] == "Local" else f"kind {view['kind']}"


def _node_resources(status: dict[str, Any]) -> list[str]:
    resources = []
    if status.get("cpus"):
        resources.append(count_text(status["cpus"], "CPU"))
    if status.get("memory_gb"):
        resources.append(f"{status['memory_gb']:g} GB")
    if status.get("gpus"):
        resources.append(count_text(len(status["gpus"]), "GPU"))
    return resources


def _runs(view: dict[str, Any]) -> list[str]:
    status = view["status"]
    on_nodes = [node["run_id"] for node in status.get("nodes", ()) if node["run_id"]]
    return list(dict.fromkeys([*status.get("runs", ()), *on_nodes, *status.get("waiting", ())]))


def _is_detail(value: Any) -> bool:
    return isinstance(value, list) and any(not isinstance(item, (str, int)) for item in value)
