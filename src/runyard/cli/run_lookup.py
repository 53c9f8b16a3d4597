"""Finds the run that a command refers to, completes run ids, and defines common options."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from runyard.client.connection import Connection
from runyard.errors import RunNotFound, UserErrorException
from runyard.spec.json import replace_non_finite

NEWEST = ("@last", "latest", "last")
_MAX_CANDIDATES = 10
_MAX_COMPLETIONS = 30
_MAX_RUNS = 10_000  # the limit of the API


def find_run(connection: Connection, text: str) -> dict[str, Any]:
    """Find a run by its id, the beginning or end of the id, or ``@last``."""
    if text in NEWEST:
        newest = connection.get("/api/runs", limit=1)["runs"]
        if not newest:
            raise RunNotFound("there are no runs in this yard", hint="start one with runyard run SCRIPT")
        view: dict[str, Any] = newest[0]
        return view
    try:
        exact: dict[str, Any] = connection.get(f"/api/runs/{text}") if "/" not in text else {}
        if exact:
            return exact
        raise RunNotFound(f"no run {text!r} in this yard", hint="list runs with runyard runs")
    except RunNotFound:
        matches = connection.get("/api/runs", fragment=text, include_children=True, limit=_MAX_CANDIDATES + 1)["runs"]
        if not matches or not text:
            raise
    run = _common_parent(connection, text, matches)
    if run is None:
        listing = "\n".join(f"  {match['run_id']}  {match['status']}" for match in matches[:_MAX_CANDIDATES])
        more = "\n  and more" if len(matches) > _MAX_CANDIDATES else ""
        raise UserErrorException(
            f"{text!r} matches several runs:\n{listing}{more}",
            hint="give more of the id; the last characters differ",
        )
    return run


def _common_parent(connection: Connection, text: str, matches: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The only match, or the match whose children all other matches are: their ids start with the parent's id."""
    shortest: dict[str, Any] = min(matches, key=lambda run: len(run["run_id"]))
    if len(matches) > _MAX_CANDIDATES:  # the list is truncated, and the parent is older than its children
        top_level = connection.get("/api/runs", fragment=text, limit=2)["runs"]
        if len(top_level) != 1:
            return None
        shortest = top_level[0]
        matches = connection.get("/api/runs", fragment=text, include_children=True, limit=_MAX_RUNS)["runs"]
    children = (run["run_id"] for run in matches if run["run_id"] != shortest["run_id"])
    return shortest if all(run_id.startswith(f"{shortest['run_id']}_") for run_id in children) else None


def complete_run(incomplete: str) -> list[str]:
    """Shell completion. Does not start a yard that is not running."""
    connection = Connection()
    if not connection.is_running():
        return []
    runs = connection.get("/api/runs", limit=_MAX_COMPLETIONS)["runs"]
    return [name for name in ("@last", *(run["run_id"] for run in runs)) if name.startswith(incomplete)]


def complete_file(ctx: typer.Context, incomplete: str) -> list[str]:
    connection = Connection()
    run = ctx.params.get("run")
    if not run or not connection.is_running():
        return []
    files = connection.get(f"/api/runs/{find_run(connection, run)['run_id']}/files")
    return [file["name"] for file in files if file["name"].startswith(incomplete)]


def confirm(yes: bool, action: str, question: str) -> None:
    """Ask before an irreversible action. Without a terminal, --yes is required."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UserErrorException(f"{action} requires confirmation", hint="add --yes")
    typer.confirm(question, abort=True, err=True)


def print_json(value: Any) -> None:
    print(json.dumps(replace_non_finite(value), indent=2))


RunArgument = Annotated[
    str,
    typer.Argument(metavar="RUN", help="Run id, its beginning or end, or @last.", autocompletion=complete_run),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
