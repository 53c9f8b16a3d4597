"""The `runyard envs` command."""

from __future__ import annotations

from typing import Annotated, Any, Optional

import typer

from runyard import clock
from runyard.cli.command import Command, new_app
from runyard.cli.commands.run import seconds
from runyard.cli.follow import print_status
from runyard.cli.formatting import age_text, count_text, size_text
from runyard.cli.run_lookup import Json, Yes, confirm, print_json
from runyard.cli.table import print_table
from runyard.client.connection import Connection
from runyard.errors import UserErrorException

app = new_app(no_args_is_help=True)


@app.callback()
def envs() -> None:
    """List or remove environments."""


@app.command("list", cls=Command)
def list_environments(as_json: Json = False) -> None:
    """List environments, most recently used first."""
    environments = Connection().get("/api/environments")
    if as_json:
        print_json(environments)
    elif not environments:
        print_status("no environments; they are built when a run needs packages")
    else:
        _print(environments)
        total = size_text(sum(e["size_bytes"] for e in environments))
        print_status(f"{count_text(len(environments), 'environment')}, {total}")


@app.command(cls=Command)
def prune(
    keys: Annotated[
        Optional[list[str]],
        typer.Argument(metavar="KEY", help="Keys of environments, or their beginnings. Default: all."),
    ] = None,
    unused_for: Annotated[
        str, typer.Option(metavar="TIME", help="Only environments not used for this long: 12h, 30d.")
    ] = "",
    yes: Yes = False,
    as_json: Json = False,
) -> int:
    """Remove environments. Those used by unfinished runs are kept; removed ones are rebuilt when needed."""
    connection = Connection()
    environments = connection.get("/api/environments")
    selected = _select(environments, keys or [], seconds(unused_for))
    if not selected:
        print_status("nothing to remove")
        if as_json:
            print_json([])
        return 0
    if not yes:
        _print(selected)
    confirm(yes, "removing environments", f"remove {count_text(len(selected), 'environment')}?")
    removed = connection.post("/api/environments/prune", {"keys": [e["key"] for e in selected]})
    if as_json:
        print_json(removed)
    in_use = len(selected) - len(removed)
    freed = size_text(sum(e["size_bytes"] for e in removed))
    print_status(
        f"removed {count_text(len(removed), 'environment')}, freed up to {freed}"
        + (f"; kept {in_use} in use" if in_use else "")
    )
    return 0


def _select(environments: list[dict[str, Any]], keys: list[str], unused_for_s: Optional[int]) -> list[dict[str, Any]]:
    selected = []
    for key in keys:
        matching = [e for e in environments if e["key"].startswith(key)]
        if len(matching) != 1:
            subject = "no environment starts" if not matching else "several environments start"
            raise UserErrorException(f"{subject} with {key!r}", hint="list them with runyard envs list")
        selected += matching
    if not keys:
        selected = environments
    if unused_for_s is None:
        return selected
    return [e for e in selected if clock.now() - e["last_used_at"] >= unused_for_s]


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
