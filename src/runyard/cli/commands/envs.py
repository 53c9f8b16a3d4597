from __future__ import annotations

import sys
from typing import Annotated, Any, Optional

import typer

from runyard import clock
from runyard.cli.command import Command, new_app
from runyard.cli.commands.run import seconds
from runyard.cli.follow import print_status
from runyard.cli.formatting import age_text, count_text, size_text
from runyard.cli.run_lookup import Json, print_json
from runyard.cli.table import print_table
from runyard.client.connection import Connection
from runyard.errors import UserErrorException

app = new_app(no_args_is_help=True)


@app.callback()
def envs() -> None:
    """List the environments on disk, or remove some."""


@app.command("list", cls=Command)
def list_environments(as_json: Json = False) -> None:
    """List the environments that were built, the one used last first."""
    found = Connection().get("/api/environments")
    if as_json:
        print_json(found)
    elif not found:
        print_status("no environments: they are built when a run asks for packages")
    else:
        _print(found)
        print_status(f"{count_text(len(found), 'environment')}, {size_text(sum(e['size_bytes'] for e in found))}")


@app.command(cls=Command)
def prune(
    keys: Annotated[Optional[list[str]], typer.Argument(metavar="KEY", help="Only these. Default: all.")] = None,
    unused_for: Annotated[str, typer.Option(metavar="TIME", help="Only those not used for this long: 12h, 30d.")] = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> int:
    """Remove environments from the disk. One that an unfinished run uses is never removed; all can be built again."""
    connection = Connection()
    found = connection.get("/api/environments")
    chosen = _chosen(found, keys or [], seconds(unused_for))
    if not chosen:
        print_status("nothing to remove")
        if as_json:
            print_json([])
        return 0
    if not yes:
        _print(chosen)
        if not sys.stdin.isatty():
            raise UserErrorException("removing environments needs a yes", hint="add --yes")
        typer.confirm(f"remove {count_text(len(chosen), 'environment')}?", abort=True, err=True)
    gone = connection.post("/api/environments/prune", {"keys": [e["key"] for e in chosen]})
    if as_json:
        print_json(gone)
    kept = len(chosen) - len(gone)
    freed = size_text(sum(e["size_bytes"] for e in gone))
    print_status(
        f"removed {count_text(len(gone), 'environment')}, freed up to {freed}"
        + (f"; {kept} in use, kept" if kept else "")
    )
    return 0


def _chosen(found: list[dict[str, Any]], keys: list[str], unused_for_s: Optional[int]) -> list[dict[str, Any]]:
    chosen = []
    for key in keys:
        matching = [e for e in found if e["key"].startswith(key)]
        if len(matching) != 1:
            what = "no environment begins" if not matching else "several environments begin"
            raise UserErrorException(f"{what} with {key!r}", hint="runyard envs list shows them")
        chosen += matching
    if not keys:
        chosen = found
    if unused_for_s is None:
        return chosen
    return [e for e in chosen if clock.now() - e["last_used_at"] >= unused_for_s]


def _print(environments: list[dict[str, Any]]) -> None:
    now = clock.now()
    print_table(
        ("KEY", "SIZE", "USED", "PYTHON", "PACKAGES"),
        [
            (
                e["key"],
                size_text(e["size_bytes"]),
                age_text(now - e["last_used_at"]),
                e["python"],
                ", ".join(e["packages"]),
            )
            for e in environments
        ],
        right=("SIZE", "USED"),
    )
