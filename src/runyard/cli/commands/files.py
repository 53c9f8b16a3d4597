from __future__ import annotations

from runyard.cli.command import Verb, new_verb
from runyard.cli.follow import say
from runyard.cli.formatting import size_text
from runyard.cli.run_lookup import Json, RunArgument, find_run, print_json
from runyard.cli.table import print_table
from runyard.client.connection import Connection

app = new_verb()


@app.command(cls=Verb)
def files(run: RunArgument, as_json: Json = False) -> None:
    """List the files of a run."""
    connection = Connection()
    run_id = find_run(connection, run)["run_id"]
    found = connection.get(f"/api/runs/{run_id}/files")
    if as_json:
        print_json(found)
    elif not found:
        say(f"run {run_id} has no files yet")
    else:
        print_table(("SIZE", "FILE"), [(size_text(file["size"]), file["name"]) for file in found], right=("SIZE",))
