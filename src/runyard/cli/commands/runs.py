"""The `runyard runs` command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple, Optional

import typer

from runyard import clock
from runyard.cli.command import Command, new_app
from runyard.cli.commands.run import pairs
from runyard.cli.follow import print_status, write_out
from runyard.cli.formatting import age_text, duration_of
from runyard.cli.run_lookup import Json, print_json
from runyard.cli.run_summary import outcome
from runyard.cli.table import print_table
from runyard.client.connection import Connection

app = new_app()
_DEFAULT_LIMIT = 20
_PAGE = 10_000  # the limit of the API
_MAX_INDENTED_BYTES = 1_000_000


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
    count = limit or (None if all else _DEFAULT_LIMIT)
    if as_json:
        _print_json([page.runs for page in _pages(query, count, with_children=all)])
        return
    pages = list(_pages(query, count, with_children=all))
    views = [view for page in pages for view in json.loads(page.runs)]
    has_more = pages[-1].following is not None
    if not views:
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


class _Page(NamedTuple):
    runs: bytes  # a JSON array
    following: Optional[int]  # the cursor of the next page


def _pages(query: dict[str, Any], limit: Optional[int], *, with_children: bool) -> Iterator[_Page]:
    """Request pages until all runs, or ``limit`` of them, are listed."""
    connection = Connection()
    before: Optional[int] = None
    while True:
        count = _PAGE if limit is None else min(limit, _PAGE)
        page = _split(connection.read("/api/runs", before=before, limit=count, include_children=with_children, **query))
        yield page
        before = page.following
        limit = None if limit is None else limit - count
        if before is None or limit == 0:
            return


def _split(response: bytes) -> _Page:
    """Separate the runs from the cursor without decoding them: 10,000 runs take a second to decode."""
    head, tail = b'{"runs":', b',"next":'
    runs, separator, following = response.rpartition(tail)
    if not separator or not runs.startswith(head):
        page = json.loads(response)
        return _Page(json.dumps(page["runs"]).encode(), page["next"])
    return _Page(runs[len(head) :], json.loads(following[:-1]))


def _print_json(pages: list[bytes]) -> None:
    """Print the runs indented; many of them as one line each, because indenting would take seconds."""
    items = b",".join(page[1:-1] for page in pages if page != b"[]")
    if len(items) < _MAX_INDENTED_BYTES:
        print_json(json.loads(b"[" + items + b"]"))
        return
    # a quote inside of a string is escaped, so this can only be the beginning of an object
    write_out(b"[\n" + items.replace(b'},{"run_id":', b'},\n{"run_id":') + b"\n]\n")


def _reason(run: dict[str, Any]) -> str:
    """The reason why a run did not succeed, or what a pending run waits for."""
    end = run["end"]
    if end is None:
        return "" if run["status"] == "Running" else str(run["activity"])
    if end["reason"] in ("succeeded", "canceled"):
        return ""  # the status is enough
    first = (end["message"] or "").splitlines()
    return first[0] if first else outcome(run)
