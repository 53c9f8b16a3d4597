from __future__ import annotations

from typing import Annotated

import typer

from runyard.cli.asking import RunArgument, find_run
from runyard.cli.following import log_pieces, say, write_out
from runyard.cli.verb import Verb, new_verb
from runyard.client.transport import Connection
from runyard.errors import UserErrorException
from runyard.lifecycle.state import RunState

app = new_verb()
_LOGS = "azureml-logs/"


@app.command(cls=Verb)
def logs(
    run: RunArgument,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the run ends.")] = False,
    name: Annotated[
        str, typer.Option(metavar="NAME", help="Another log, by a part of its name: environment.")
    ] = "70_driver_log",
) -> int:
    """Print the log of a run, as the script wrote it."""
    connection = Connection()
    view = find_run(connection, run)
    if follow and not RunState(view["status"]).is_terminal:
        return _follow(connection, view["run_id"], name)
    files = [file["name"] for file in connection.get(f"/api/runs/{view['run_id']}/files")]
    known = [file for file in files if file.startswith(_LOGS)]
    chosen = [file for file in known if name in file.removeprefix(_LOGS)]
    if not chosen and name == "70_driver_log":
        say(f"run {view['run_id']} has no log of its script" + ("" if view["end"] is None else ": it never started"))
    elif not chosen:
        names = ", ".join(file.removeprefix(_LOGS) for file in known)
        raise UserErrorException(f"run {view['run_id']} has no log {name!r}", hint=f"its logs: {names or 'none yet'}")
    for file in chosen:
        for piece in connection.pieces(f"/api/runs/{view['run_id']}/files/{file}"):
            write_out(piece)
    return 0


def _follow(connection: Connection, run_id: str, name: str) -> int:
    try:
        for piece in log_pieces(connection, run_id, name):
            write_out(piece)
    except KeyboardInterrupt:
        say(f"\nstopped following; the run goes on. runyard cancel {run_id} cancels it")
        return 130
    return 0
