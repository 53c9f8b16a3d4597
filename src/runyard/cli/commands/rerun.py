from __future__ import annotations

import secrets
import time
from typing import Annotated, Any

import typer

from runyard.cli.command import Command, new_app
from runyard.cli.fast_path import user_name
from runyard.cli.follow import follow_to_exit
from runyard.cli.run_lookup import RunArgument, find_run
from runyard.client.connection import Connection
from runyard.errors import UserErrorException

app = new_app()


@app.command(cls=Command)
def rerun(
    run: RunArgument,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Print the run's id and do not follow it.")] = False,
) -> int:
    """Run the same code with the same arguments again, as a new run.

    The code is the snapshot that was taken then; the folder may have changed or be gone.
    """
    connection = Connection()
    old = find_run(connection, run)
    if old["type"] == "hyperdrive":
        raise UserErrorException(
            f"{old['run_id']} is a sweep, and its children are what can be run again",
            hint=f"runyard show {old['run_id']} lists them, and `runyard rerun {old['run_id']}_0` runs the first; "
            "sweep.rerun_failed() in Python runs those that failed; a sweep's command makes a new one",
        )
    if not old["spec"] or not old["snapshot_id"]:
        raise UserErrorException(
            f"run {old['run_id']} was not submitted: it was the process that opened it",
            hint="runs that came from runyard run, runyard submit or Experiment.submit can be run again",
        )
    _read_data(connection, old["spec"])
    view = connection.post(
        "/api/runs",
        {
            "run_id": f"{old['experiment']}_{int(time.time())}_{secrets.token_hex(4)}",
            "experiment": old["experiment"],
            "spec": old["spec"],
            "snapshot_id": old["snapshot_id"],
            "tags": old["tags"],
            "properties": {"runyard.rerun_of": old["run_id"]},
            "submitted_by": user_name(),
        },
    )
    if detach:
        print(view["run_id"])
        return 0
    return follow_to_exit(connection, view)


def _read_data(connection: Connection, spec: dict[str, Any]) -> None:
    """Datasets that have changed are read first, as long as that takes: no request may last for hours."""
    from runyard.sdk.data.pinning import pin
    from runyard.spec.dataset import DatasetDefinition
    from runyard.spec.json import from_json

    for use in spec.get("data") or ():
        if use["dataset"]:
            dataset = connection.get("/api/datasets/one", id=use["dataset"]["id"])
            pin(connection, from_json(DatasetDefinition, dataset["definition"]))
