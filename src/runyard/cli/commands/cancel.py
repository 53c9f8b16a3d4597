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
        typer.Argument(
            metavar="RUN", help="Their ids, beginnings or ends of them, or @last.", autocompletion=complete_run
        ),
    ],
    wait: Annotated[bool, typer.Option("--wait", help="Until they have ended.")] = False,
) -> None:
    """Cancel runs: their processes are asked to end, and after a grace period stopped."""
    connection = Connection()
    # all of them first: a wrong name cancels nothing; and one that was named twice is one run
    found = {view["run_id"]: view for view in (find_run(connection, run) for run in runs)}
    ending = []
    for run_id, view in found.items():
        if RunState(view["status"]).is_terminal:
            print(f"{run_id}  had ended already: {outcome(view)}")
            continue
        view = connection.post(f"/api/runs/{run_id}/cancel")
        if wait and not RunState(view["status"]).is_terminal:
            ending.append(run_id)
        else:
            print(f"{run_id}  {outcome(view)}")
    for run_id in ending:
        for kind, data in connection.events(f"/api/runs/{run_id}/follow", logs=False):
            if kind == "end":
                print(f"{run_id}  {outcome(data)}")
