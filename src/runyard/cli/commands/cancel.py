"""The `runyard cancel` command."""

from __future__ import annotations

from typing import Annotated

import typer

from runyard.cli.command import Command, new_app
from runyard.cli.run_lookup import complete_run, find_run
from runyard.cli.run_summary import outcome
from runyard.client.connection import Connection
from runyard.lifecycle.state import RunState

app = new_app()


@app.command(cls=Command)
def cancel(
    runs: Annotated[
        list[str],
        typer.Argument(metavar="RUN", help="Run ids, their beginnings or ends, or @last.", autocompletion=complete_run),
    ],
    wait: Annotated[bool, typer.Option("--wait", help="Wait until they have ended.")] = False,
) -> None:
    """Cancel runs: their processes are terminated, and killed after a grace period."""
    connection = Connection()
    # look up all runs first, so that a wrong name cancels nothing; duplicates are removed
    views = {view["run_id"]: view for view in (find_run(connection, run) for run in runs)}
    pending = []
    for run_id, view in views.items():
        if RunState(view["status"]).is_terminal:
            print(f"{run_id}  had already ended: {outcome(view)}")
            continue
        view = connection.post(f"/api/runs/{run_id}/cancel")
        if wait and not RunState(view["status"]).is_terminal:
            pending.append(run_id)
        else:
            print(f"{run_id}  {outcome(view)}")
    for run_id in pending:
        for kind, data in connection.events(f"/api/runs/{run_id}/follow", logs=False):
            if kind == "end":
                print(f"{run_id}  {outcome(data)}")
