"""What most verbs begin with: the yard, and the run that a person means."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from runyard.client.connection import Connection
from runyard.errors import RunNotFound, UserErrorException
from runyard.spec.json import replace_non_finite

NEWEST = ("@last", "latest", "last")
_CANDIDATES = 10
_OFFERED = 30
_ALL = 10_000  # what the yard gives at most


def find_run(connection: Connection, text: str) -> dict[str, Any]:
    """By its id, the beginning or the end of one, or ``@last``."""
    if text in NEWEST:
        newest = connection.get("/api/runs", limit=1)["runs"]
        if not newest:
            raise RunNotFound("there are no runs in this yard yet", hint="runyard run SCRIPT makes the first")
        view: dict[str, Any] = newest[0]
        return view
    try:
        exact: dict[str, Any] = connection.get(f"/api/runs/{text}") if "/" not in text else {}
        if exact:
            return exact
        raise RunNotFound(f"no run {text!r} in this yard", hint="runyard runs lists them")
    except RunNotFound:
        found = connection.get("/api/runs", fragment=text, include_children=True, limit=_CANDIDATES + 1)["runs"]
        if not found or not text:
            raise
    meant = _parent_of_all(connection, text, found)
    if meant is None:
        named = "\n".join(f"  {run['run_id']}  {run['status']}" for run in found[:_CANDIDATES])
        more = "\n  and more" if len(found) > _CANDIDATES else ""
        raise UserErrorException(
            f"{text!r} is the beginning or the end of several runs:\n{named}{more}",
            hint="give more of the id; the last characters differ",
        )
    return meant


def _parent_of_all(connection: Connection, text: str, found: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The only one that was found, or that which the others are children of: their ids begin with its own."""
    shortest: dict[str, Any] = min(found, key=lambda run: len(run["run_id"]))
    if len(found) > _CANDIDATES:  # the newest of more: the parent is older than its children
        tops = connection.get("/api/runs", fragment=text, limit=2)["runs"]
        if len(tops) != 1:
            return None
        shortest = tops[0]
        found = connection.get("/api/runs", fragment=text, include_children=True, limit=_ALL)["runs"]
    others = (run["run_id"] for run in found if run["run_id"] != shortest["run_id"])
    return shortest if all(other.startswith(f"{shortest['run_id']}_") for other in others) else None


def complete_run(incomplete: str) -> list[str]:
    """For the shell. A yard that does not run is not started for the sake of a Tab."""
    connection = Connection()
    if not connection.is_running():
        return []
    runs = connection.get("/api/runs", limit=_OFFERED)["runs"]
    return [name for name in ("@last", *(run["run_id"] for run in runs)) if name.startswith(incomplete)]


def complete_file(ctx: typer.Context, incomplete: str) -> list[str]:
    connection = Connection()
    run = ctx.params.get("run")
    if not run or not connection.is_running():
        return []
    files = connection.get(f"/api/runs/{find_run(connection, run)['run_id']}/files")
    return [file["name"] for file in files if file["name"].startswith(incomplete)]


def must_agree(yes: bool, doing: str, question: str) -> None:
    """Before what cannot be undone. Without a terminal nobody can be asked, and silence is no yes."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UserErrorException(f"{doing} needs a yes", hint="add --yes")
    typer.confirm(question, abort=True, err=True)


def print_json(value: Any) -> None:
    print(json.dumps(replace_non_finite(value), indent=2))


RunArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN", help="Its id, the beginning or the end of it, or @last.", autocompletion=complete_run
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
