from __future__ import annotations

import json
from typing import Annotated, Any, Optional

import typer

from runyard import clock
from runyard.cli.command import Command, new_app
from runyard.cli.commands.run import pairs
from runyard.cli.follow import print_status
from runyard.cli.formatting import age_text, duration_of
from runyard.cli.run_lookup import Json, print_json
from runyard.cli.run_summary import outcome
from runyard.cli.table import print_table
from runyard.client.connection import Connection

app = new_app()
_SHOWN = 20
_PAGE = 1000


@app.command(cls=Command)
def runs(
    experiment: Annotated[
        Optional[str], typer.Option("--experiment", "-e", metavar="NAME", help="Only of this.")
    ] = None,
    status: Annotated[
        Optional[str],
        typer.Option(metavar="STATUS[,STATUS]", help="Only in these: running, queued, completed, failed, canceled, …"),
    ] = None,
    tag: Annotated[
        Optional[list[str]], typer.Option(metavar="KEY[=VALUE]", help="Only with this tag; repeatable.")
    ] = None,
    limit: Annotated[
        Optional[int],
        typer.Option("--limit", "-n", metavar="N", min=1, help="At most this many (default: 20; with --all, all)."),
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="All of them, with child runs.")] = False,
    as_json: Json = False,
) -> None:
    """List runs, newest first."""
    bare: dict[str, Optional[str]] = {item: None for item in tag or [] if "=" not in item}
    tags = {**bare, **pairs("--tag", [item for item in tag or [] if "=" in item])}
    query = {"experiment": experiment, "status": status, "tags": json.dumps(tags) if tags else None}
    found, more = _collect(query, limit or (None if all else _SHOWN), with_children=all)
    if as_json:
        print_json(found)
    elif not found:
        print_status("no runs" + (" like that" if any(query.values()) else " yet: runyard run SCRIPT makes the first"))
    else:
        now = clock.now()
        rows = [
            (
                run["run_id"],
                run["experiment"],
                run["status"],
                age_text(now - run["created_at"]),
                duration_of(run, now),
                _why(run),
            )
            for run in found
        ]
        print_table(("RUN", "EXPERIMENT", "STATUS", "AGE", "TOOK", "WHY"), rows, right=("AGE", "TOOK"))
        if more:
            print_status(f"the newest {len(found)}; --limit N shows more, --all {'alone ' if all else ''}shows all")


def _collect(query: dict[str, Any], limit: Optional[int], *, with_children: bool) -> tuple[list[dict[str, Any]], bool]:
    connection, found = Connection(), list[dict[str, Any]]()
    before: Optional[int] = None
    while True:
        wanted = _PAGE if limit is None else limit - len(found)
        page = connection.get("/api/runs", before=before, limit=wanted, include_children=with_children, **query)
        found += page["runs"]
        before = page["next"]
        if before is None or len(found) == limit:
            return found, before is not None


def _why(run: dict[str, Any]) -> str:
    """The reason of what did not go well, or what an unfinished run waits for."""
    end = run["end"]
    if end is None:
        return "" if run["status"] == "Running" else str(run["activity"])
    if end["reason"] in ("succeeded", "canceled"):
        return ""  # the status says it
    first = (end["message"] or "").splitlines()
    return first[0] if first else outcome(run)
