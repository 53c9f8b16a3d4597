from __future__ import annotations

from typing import Annotated, Any

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
_OF_THE_SCRIPT = "70_driver_log"
_OF_THE_SWEEP = "hyperdrive"


@app.command(cls=Command)
def logs(
    run: RunArgument,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the run ends.")] = False,
    name: Annotated[str, typer.Option(metavar="NAME", help="Another log, by a part of its name: environment.")] = "",
) -> int:
    """Print the log of a run, as the script wrote it; of a sweep, what it did and why."""
    connection = Connection()
    view = find_run(connection, run)
    if follow and not RunState(view["status"]).is_terminal:
        return _follow(connection, view, name)
    wanted = name or _own(view)
    files = [file["name"] for file in connection.get(f"/api/runs/{view['run_id']}/files")]
    known = [file for file in files if file.startswith(_LOGS)]
    chosen = [file for file in known if wanted in file.removeprefix(_LOGS)]
    if not chosen and not name:
        print_status(_why_nothing(view))
    elif not chosen:
        names = ", ".join(file.removeprefix(_LOGS) for file in known)
        raise UserErrorException(f"run {view['run_id']} has no log {name!r}", hint=f"its logs: {names or 'none yet'}")
    for file in chosen:
        for piece in connection.stream(f"/api/runs/{view['run_id']}/files/{file}"):
            write_out(piece)
    return 0


def _own(view: dict[str, Any]) -> str:
    return _OF_THE_SWEEP if view["type"] == "hyperdrive" else _OF_THE_SCRIPT


def _why_nothing(view: dict[str, Any]) -> str:
    run_id = view["run_id"]
    if view["spec"] is None and view["type"] != "hyperdrive":
        return f"run {run_id} has no log: it was not submitted, and what its process printed went where it was started"
    if view["started_at"] is None or view["type"] == "hyperdrive":
        return f"run {run_id} has no log yet: {outcome(view)}" if view["end"] is None else f"{run_id}  {outcome(view)}"
    return f"run {run_id} has no log of its script: {outcome(view)}"


def _follow(connection: Connection, view: dict[str, Any], name: str) -> int:
    try:
        end = follow_log(connection, view, name or _own(view))
    except KeyboardInterrupt:
        print_status(f"\nstopped following; the run goes on. runyard cancel {view['run_id']} cancels it")
        return INTERRUPTED
    if end["started_at"] is None and not name:
        print_status(_why_nothing(end))
    return 0
