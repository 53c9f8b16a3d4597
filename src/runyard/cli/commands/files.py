"""The `runyard files` command."""

from __future__ import annotations

from runyard.cli.command import Command, new_app
from runyard.cli.follow import print_status
from runyard.cli.formatting import size_text
from runyard.cli.run_lookup import Json, RunArgument, find_run, print_json
from runyard.cli.table import print_table
from runyard.client.connection import Connection

app = new_app()


@app.command(cls=Command)
def files(run: RunArgument, as_json: Json = False) -> None:
    """List the files of a run."""
    connection = Connection()
    run_id = find_run(connection, run)["run_id"]
    entries = connection.get(f"/api/runs/{run_id}/files")
    if as_json:
        print_json(entries)
    elif not entries:
        print_status(f"run {run_id} has no files")
    else:
        print_table(("SIZE", "FILE"), [(size_text(file["size"]), file["name"]) for file in entries], right=("SIZE",))
