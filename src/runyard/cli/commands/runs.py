"""The `runyard runs` command."""

from __future__ import annotations

import json
from typing import Annotated, Any, Optional

import typer

from runyard import clock
from runyard.cli.command import Command, new_app
from runyard.cli.commands.run import pairs
from runyard.cli.follow import print_status
from runyard.cli.formatting import age_text, duration_of
from runyard.cli.run_lookup import Json, print_json_list
from runyard.cli.run_summary import outcome
from runyard.cli.table import print_table
from runyard.client.connection import Connection

app = new_app()
_DEFAULT_LIMIT = 20
_PAGE = 10_000  # the limit of the API


@app.command(cls=Command)
def runs(
    experiment: Annotated[
        Optional[str], typer.Option("--experiment", "-e", metavar="NAME", help="Only runs of this experiment.")
    ] = None,
    status: Annotated[
        Optional[str],
        typer.Option(
            metavar="STATUS[,STATUS]", help="Only runs with these: running, queued, completed, failed, canceled, …"
        ),
    ] = None,
    tag: Annotated[
        Optional[list[str]], typer.Option(metavar="KEY[=VALUE]", help="Only runs with this tag. Repeatable.")
    ] = None,
    limit: Annotated[
        Optional[int],
        typer.Option(
            "--limit", "-n", metavar="N", min=1, help="Maximum number of runs (default: 20; with --all, unlimited)."
        ),
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="All runs, including child runs.")] = False,
    as_json: Json = False,
) -> None:
    """List runs, newest first."""
    keys: dict[str, Optional[str]] = {item: None for item in tag or [] if "=" not in item}
    tags = {**keys, **pairs("--tag", [item for item in tag or [] if "=" in item])}
    query = {"experiment": experiment, "status": status, "tags": json.dumps(tags) if tags else None}
    views, has_more = _collect(query, limit or (None if all else _DEFAULT_LIMIT), with_children=all)
    if as_json:
        print_json_list(views)
    elif not views:
        print_status("no matching runs" if any(query.values()) else "no runs; start one with runyard run SCRIPT")
    else:
        now = clock.now()
        rows = [
            (
                run["run_id"],
                run["experiment"],
                run["status"],
                age_text(now - run["created_at"]),
                duration_of(run, now),
                _reason(run),
            )
            for run in views
        ]
        print_table(("RUN", "EXPERIMENT", "STATUS", "AGE", "DURATION", "REASON"), rows, right=("AGE", "DURATION"))
        if has_more:
            print_status(f"showing the newest {len(views)} runs; use --limit N for more, --all for all")


def _collect(query: dict[str, Any], limit: Optional[int], *, with_children: bool) -> tuple[list[dict[str, Any]], bool]:
    connection, views = Connection(), list[dict[str, Any]]()
    before: Optional[int] = None
    while True:
        count = _PAGE if limit is None else min(limit - len(views), _PAGE)
        page = connection.get("/api/runs", before=before, limit=count, include_children=with_children, **query)
        views += page["runs"]
        before = page["next"]
        if before is None or len(views) == limit:
            return views, before is not None


def _reason(run: dict[str, Any]) -> str:
    """The reason why a run did not succeed, or what a pending run waits for."""
    end = run["end"]
    if end is None:
        return "" if run["status"] == "Running" else str(run["activity"])
    if end["reason"] in ("succeeded", "canceled"):
        return ""  # the status is enough
    first = (end["message"] or "").splitlines()
    return first[0] if first else outcome(run)
