"""The `runyard services` command."""

from __future__ import annotations

import sys
from typing import Annotated, Any, Optional

import typer

from runyard import clock
from runyard.cli.command import Command, new_app
from runyard.cli.follow import print_status
from runyard.cli.formatting import age_text, count_text
from runyard.cli.run_lookup import Json, Yes, confirm, print_json
from runyard.cli.table import print_table
from runyard.client.connection import Connection
from runyard.errors import UserErrorException

app = new_app(no_args_is_help=True)
_ROUTE = "/api/services"


def complete_service(incomplete: str) -> list[str]:
    """Shell completion. Does not start a yard that is not running."""
    connection = Connection()
    names = [view["name"] for view in connection.get(_ROUTE)] if connection.is_running() else []
    return [name for name in names if name.startswith(incomplete)]


Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the service.", autocompletion=complete_service)]


@app.callback()
def services() -> None:
    """Manage services: status, logs, keys, traffic, deletion."""


@app.command("list", cls=Command)
def list_services(as_json: Json = False) -> None:
    """List services."""
    connection = Connection()
    views = connection.get(_ROUTE)
    if as_json:
        print_json(views)
    elif not views:
        print_status("no services; deploy one with runyard deploy NAME MODEL")
    else:
        print_table(
            ("NAME", "STATE", "VERSIONS", "REQUESTS", "P50", "P99", "AGE", "MODELS", "WHERE"),
            [_row(view, connection.get(f"{_ROUTE}/{view['name']}/stats")) for view in views],
            right=("REQUESTS", "P50", "P99"),
        )


@app.command(cls=Command)
def show(name: Name, as_json: Json = False) -> None:
    """Show a service: versions, workers, requests and latencies."""
    connection = Connection()
    view, stats = connection.get(f"{_ROUTE}/{name}"), connection.get(f"{_ROUTE}/{name}/stats")
    if as_json:
        print_json({**view, "stats": stats})
        return
    settings = view["configuration"]
    print(f"{view['name']}  {view['state']}{': ' + view['error'] if view['error'] else ''}")
    print(f"scoring  {view['scoring_uri']}")
    print(f"docs     {view['swagger_uri'].replace('swagger.json', 'docs')}")
    print(f"key      {'required: runyard services keys ' + name if settings['auth_enabled'] else 'not required'}")
    for version in view["versions"]:
        if version["state"] == "Retired":
            continue
        serving = [worker for worker in version["workers"] if worker["state"] == "serving"]
        script = version["entry_script"] or "ONNX model"
        models = ", ".join(version["models"]) or "no model"
        print(
            f"version  {version['version']}: {version['state']}, {version['traffic']} %, "
            f"{count_text(len(serving), 'worker')}, {script} with {models}"
        )
    failed = stats["failed"] + stats["turned_away"]
    print(f"requests {stats['requests']:,}, {failed} failed, {stats['refused']} rejected")
    print(f"latency  p50 {stats['p50_ms']:g} ms, p95 {stats['p95_ms']:g} ms, p99 {stats['p99_ms']:g} ms")


@app.command(cls=Command)
def logs(
    name: Name,
    lines: Annotated[int, typer.Option("--lines", "-n", metavar="N", help="Number of lines.")] = 5000,
) -> None:
    """Print the deployment log and the output of the scoring script."""
    sys.stdout.write(Connection().get(f"{_ROUTE}/{name}/logs", lines=lines)["text"] + "\n")


@app.command(cls=Command)
def requests(
    name: Name,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", help="Number of requests.")] = 20,
    as_json: Json = False,
) -> None:
    """List the latest requests to a service, newest first."""
    entries = Connection().get(f"{_ROUTE}/{name}/requests", limit=limit)
    if as_json:
        print_json(entries)
        return
    print_table(
        ("AT", "STATUS", "MS", "IN", "OUT", "VERSION", "REQUEST"),
        [
            (
                *(str(entry[key]) for key in ("at", "status", "ms", "in", "out", "version")),
                f"{entry['id']} {entry['path']}",
            )
            for entry in entries
        ],
        right=("MS", "IN", "OUT"),
    )


@app.command(cls=Command)
def keys(
    name: Name,
    renew: Annotated[Optional[str], typer.Option(metavar="WHICH", help="Replace a key: primary or secondary.")] = None,
    as_json: Json = False,
) -> None:
    """Print the keys of a service; either of them is accepted."""
    connection, route = Connection(), f"{_ROUTE}/{name}/keys"
    pair = connection.post(route, {"which": renew}) if renew else connection.get(route)
    if as_json:
        print_json(pair)
        return
    print(f"primary    {pair['primary']}\nsecondary  {pair['secondary']}")


@app.command(cls=Command)
def traffic(
    name: Name,
    shares: Annotated[list[str], typer.Argument(metavar="VERSION=PERCENT", help="Share of every version: 1=90 2=10.")],
    as_json: Json = False,
) -> None:
    """Set the share of requests of each version; versions without a share are stopped."""
    pairs = [text.partition("=") for text in shares]
    if not all(version.isdecimal() and share.isdecimal() for version, _, share in pairs):
        raise UserErrorException(
            f"invalid shares: {' '.join(shares)}", hint=f"use runyard services traffic {name} 1=90 2=10"
        )
    view = Connection().post(f"{_ROUTE}/{name}/traffic", {version: int(share) for version, _, share in pairs})
    if as_json:
        print_json(view)
    else:
        print_status(f"{name}: {_shares(view)}")


@app.command(cls=Command)
def delete(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME", help="Names of services.", autocompletion=complete_service)
    ],
    yes: Yes = False,
) -> None:
    """Delete services and free their names."""
    connection = Connection()
    for name in names:  # a wrong name deletes nothing
        connection.get(f"{_ROUTE}/{name}")
    confirm(yes, f"deleting {', '.join(names)}", f"delete {', '.join(names)}?")
    for name in names:
        connection.delete(f"{_ROUTE}/{name}")
        print_status(f"deleted {name}")


def _row(view: dict[str, Any], stats: dict[str, Any]) -> tuple[str, ...]:
    models = dict.fromkeys(model for version in view["versions"] if version["traffic"] for model in version["models"])
    return (
        view["name"],
        view["state"],
        _shares(view),
        f"{stats['requests']:,}",
        f"{stats['p50_ms']:g} ms",
        f"{stats['p99_ms']:g} ms",
        age_text(clock.now() - view["created_at"]),
        ", ".join(models) or "-",
        view["scoring_uri"],
    )


def _shares(view: dict[str, Any]) -> str:
    if len(view["traffic"]) <= 1:
        return ", ".join(view["traffic"]) or "-"
    return ", ".join(f"{version}: {share} %" for version, share in view["traffic"].items())
