"""The `runyard logs` command."""

from __future__ import annotations

from typing import Annotated, Any, Optional

import typer

from runyard.cli.command import Command, new_app
from runyard.cli.follow import INTERRUPTED, follow_log, print_status, write_out
from runyard.cli.run_lookup import RunArgument, find_run
from runyard.cli.run_summary import outcome
from runyard.client.connection import Connection
from runyard.errors import UserErrorException
from runyard.lifecycle.state import RunState

app = new_app()
_LOGS = "azureml-logs/"
_SCRIPT_LOG = "70_driver_log"
_SWEEP_LOG = "hyperdrive"
_MAX_MATCHES = 10_000  # the limit of the API


@app.command(cls=Command)
def logs(
    run: RunArgument,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow the log until the run ends.")] = False,
    name: Annotated[
        str, typer.Option(metavar="NAME", help="Print another log, by a part of its name: environment.")
    ] = "",
    search: Annotated[
        Optional[str], typer.Option(metavar="TEXT", help="Print only lines that contain this text, with their numbers.")
    ] = None,
) -> int:
    """Print the log of a run: the output of its script, or the decisions of a sweep.

    With --search, the exit code is 1 if no line contains the text, as with grep.
    """
    if search is not None and follow:
        raise UserErrorException("--search and --follow cannot be combined", hint="search again when the run has ended")
    connection = Connection()
    view = find_run(connection, run)
    if follow and not RunState(view["status"]).is_terminal:
        return _follow(connection, view, name)
    name_part = name or _default_log(view)
    files = [file["name"] for file in connection.get(f"/api/runs/{view['run_id']}/files")]
    all_logs = [file for file in files if file.startswith(_LOGS)]
    selected = [file for file in all_logs if name_part in file.removeprefix(_LOGS)]
    if not selected and not name:
        print_status(_reason_for_no_log(view))
    elif not selected:
        names = ", ".join(file.removeprefix(_LOGS) for file in all_logs)
        raise UserErrorException(f"run {view['run_id']} has no log {name!r}", hint=f"available logs: {names or 'none'}")
    if search is not None:
        return _search(connection, view["run_id"], [file.removeprefix(_LOGS) for file in selected], search)
    for file in selected:
        for piece in connection.stream(f"/api/runs/{view['run_id']}/files/{file}"):
            write_out(piece)
    return 0


def _search(connection: Connection, run_id: str, names: list[str], text: str) -> int:
    """Print `LINE: TEXT` of each match; with several logs, also the name of the log."""
    has_match = False
    for name in names:
        matches = connection.get(f"/api/runs/{run_id}/logs/{name}/search", text=text, limit=_MAX_MATCHES)
        prefix = f"{name}:" if len(names) > 1 else ""
        for match in matches:
            print(f"{prefix}{match['line']}: {match['text']}")
        if len(matches) == _MAX_MATCHES:
            print_status(f"only the first {_MAX_MATCHES:,} matching lines of {name}")
        has_match = has_match or bool(matches)
    return 0 if has_match else 1


def _default_log(view: dict[str, Any]) -> str:
    return _SWEEP_LOG if view["type"] == "hyperdrive" else _SCRIPT_LOG


def _reason_for_no_log(view: dict[str, Any]) -> str:
    run_id = view["run_id"]
    if view["spec"] is None and view["type"] != "hyperdrive":
        return f"run {run_id} has no log: it is interactive, and its output went to its own terminal"
    if view["started_at"] is None or view["type"] == "hyperdrive":
        return f"run {run_id} has no log yet: {outcome(view)}" if view["end"] is None else f"{run_id}  {outcome(view)}"
    return f"run {run_id} has no script log: {outcome(view)}"


def _follow(connection: Connection, view: dict[str, Any], name: str) -> int:
    try:
        end = follow_log(connection, view, name or _default_log(view))
    except KeyboardInterrupt:
        print_status(f"\nstopped following; the run continues. To cancel it:  runyard cancel {view['run_id']}")
        return INTERRUPTED
    if end["started_at"] is None and not name:
        print_status(_reason_for_no_log(end))
    return 0
