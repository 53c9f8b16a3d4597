from __future__ import annotations

import sys
from typing import Annotated, Any, Optional

import typer

from runyard import clock
from runyard.cli.command import Command, new_app
from runyard.cli.follow import print_status
from runyard.cli.formatting import age_text, count_text
from runyard.cli.run_lookup import Json, print_json
from runyard.cli.table import print_table
from runyard.client.connection import Connection
from runyard.errors import UserErrorException

app = new_app(no_args_is_help=True)
_ROUTE = "/api/services"


def complete_service(incomplete: str) -> list[str]:
    """For the shell. A yard that does not run is not started for the sake of a Tab."""
    connection = Connection()
    names = [view["name"] for view in connection.get(_ROUTE)] if connection.is_running() else []
    return [name for name in names if name.startswith(incomplete)]


Name = Annotated[str, typer.Argument(metavar="NAME", help="The service's name.", autocompletion=complete_service)]


@app.callback()
def services() -> None:
    """Look at services, their logs, keys and shares, or delete them."""


@app.command("list", cls=Command)
def list_services(as_json: Json = False) -> None:
    """List the services of this yard."""
    connection = Connection()
    found = connection.get(_ROUTE)
    if as_json:
        print_json(found)
    elif not found:
        print_status("no services: runyard deploy NAME MODEL makes one")
    else:
        print_table(
            ("NAME", "STATE", "VERSIONS", "REQUESTS", "P50", "P99", "AGE", "MODELS", "WHERE"),
            [_row(view, connection.get(f"{_ROUTE}/{view['name']}/stats")) for view in found],
            right=("REQUESTS", "P50", "P99"),
        )


@app.command(cls=Command)
def show(name: Name, as_json: Json = False) -> None:
    """Show a service: its versions and workers, what it was asked and how long that took."""
    connection = Connection()
    view, counted = connection.get(f"{_ROUTE}/{name}"), connection.get(f"{_ROUTE}/{name}/stats")
    if as_json:
        print_json({**view, "stats": counted})
        return
    settings = view["configuration"]
    print(f"{view['name']}  {view['state']}{': ' + view['error'] if view['error'] else ''}")
    print(f"scores   {view['scoring_uri']}")
    print(f"says     {view['swagger_uri'].replace('swagger.json', 'docs')}")
    print(f"key      {'needed: runyard services keys ' + name if settings['auth_enabled'] else 'not needed'}")
    for version in view["versions"]:
        if version["state"] == "Retired":
            continue
        alive = [one for one in version["workers"] if one["state"] == "serving"]
        what = version["entry_script"] or "the model itself"
        models = ", ".join(version["models"]) or "no model"
        print(
            f"version  {version['version']}: {version['state']}, {version['traffic']} %, "
            f"{count_text(len(alive), 'worker')}, {what} with {models}"
        )
    failed = counted["failed"] + counted["turned_away"]
    print(f"asked    {count_text(counted['requests'], 'time')}, {failed} failed, {counted['refused']} refused")
    print(f"took     p50 {counted['p50_ms']:g} ms, p95 {counted['p95_ms']:g} ms, p99 {counted['p99_ms']:g} ms")


@app.command(cls=Command)
def logs(
    name: Name,
    lines: Annotated[int, typer.Option("--lines", "-n", metavar="N", help="The last N lines.")] = 5000,
) -> None:
    """Print how a service was deployed, and what its scoring script said."""
    sys.stdout.write(Connection().get(f"{_ROUTE}/{name}/logs", lines=lines)["text"] + "\n")


@app.command(cls=Command)
def requests(
    name: Name,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", help="The last N.")] = 20,
    as_json: Json = False,
) -> None:
    """List the last requests to a service, the newest first."""
    found = Connection().get(f"{_ROUTE}/{name}/requests", limit=limit)
    if as_json:
        print_json(found)
        return
    print_table(
        ("AT", "STATUS", "MS", "IN", "OUT", "VERSION", "REQUEST"),
        [
            (*(str(one[key]) for key in ("at", "status", "ms", "in", "out", "version")), f"{one['id']} {one['path']}")
            for one in found
        ],
        right=("MS", "IN", "OUT"),
    )


@app.command(cls=Command)
def keys(
    name: Name,
    renew: Annotated[Optional[str], typer.Option(metavar="WHICH", help="Make a new one: primary or secondary.")] = None,
    as_json: Json = False,
) -> None:
    """Print the keys of a service: either of them opens it."""
    connection, route = Connection(), f"{_ROUTE}/{name}/keys"
    found = connection.post(route, {"which": renew}) if renew else connection.get(route)
    if as_json:
        print_json(found)
        return
    print(f"primary    {found['primary']}\nsecondary  {found['secondary']}")


@app.command(cls=Command)
def traffic(
    name: Name,
    shares: Annotated[list[str], typer.Argument(metavar="VERSION=PERCENT", help="All of them: 1=90 2=10.")],
    as_json: Json = False,
) -> None:
    """Give each version its share of the requests; one that gets nothing ends."""
    pairs = [one.partition("=") for one in shares]
    if not all(version.isdecimal() and share.isdecimal() for version, _, share in pairs):
        raise UserErrorException(f"{' '.join(shares)} are no shares", hint=f"runyard services traffic {name} 1=90 2=10")
    view = Connection().post(f"{_ROUTE}/{name}/traffic", {version: int(share) for version, _, share in pairs})
    if as_json:
        print_json(view)
    else:
        print_status(f"{name}: {_shares(view)}")


@app.command(cls=Command)
def delete(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME", help="Which services.", autocompletion=complete_service)
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete services: their requests are answered no more, and their names are free."""
    connection = Connection()
    for name in names:  # before one of them is gone
        connection.get(f"{_ROUTE}/{name}")
    if not yes:
        if not sys.stdin.isatty():
            raise UserErrorException(f"deleting {', '.join(names)} needs a yes", hint="add --yes")
        typer.confirm(f"delete {', '.join(names)}?", abort=True, err=True)
    for name in names:
        connection.delete(f"{_ROUTE}/{name}")
        print_status(f"deleted {name}")


def _row(view: dict[str, Any], counted: dict[str, Any]) -> tuple[str, ...]:
    models = dict.fromkeys(model for version in view["versions"] if version["traffic"] for model in version["models"])
    return (
        view["name"],
        view["state"],
        _shares(view),
        f"{counted['requests']:,}",
        f"{counted['p50_ms']:g} ms",
        f"{counted['p99_ms']:g} ms",
        age_text(clock.now() - view["created_at"]),
        ", ".join(models) or "-",
        view["scoring_uri"],
    )


def _shares(view: dict[str, Any]) -> str:
    if len(view["traffic"]) <= 1:
        return ", ".join(view["traffic"]) or "-"
    return ", ".join(f"{version}: {share} %" for version, share in view["traffic"].items())
