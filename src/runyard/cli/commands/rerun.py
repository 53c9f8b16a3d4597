"""The `runyard rerun` command."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from runyard.cli.command import Command, new_app
from runyard.cli.fast_path import user_name
from runyard.cli.follow import follow_to_exit
from runyard.cli.run_lookup import RunArgument, find_run
from runyard.client.connection import Connection
from runyard.errors import UserErrorException
from runyard.spec.names import new_run_id

app = new_app()


@app.command(cls=Command)
def rerun(
    run: RunArgument,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Print the run's id and do not follow it.")] = False,
) -> int:
    """Run the same code with the same arguments as a new run.

    Uses the snapshot of the original run, even if the folder has changed since.
    """
    connection = Connection()
    original = find_run(connection, run)
    if original["type"] == "hyperdrive":
        raise UserErrorException(
            f"{original['run_id']} is a sweep; only its children can be rerun",
            hint=f"`runyard show {original['run_id']}` lists them; `runyard rerun {original['run_id']}_0` reruns one; "
            "sweep.rerun_failed() in Python reruns the failed ones",
        )
    if not original["spec"] or not original["snapshot_id"]:
        raise UserErrorException(
            f"run {original['run_id']} is interactive and cannot be rerun",
            hint="only submitted runs can be rerun: runyard run, runyard submit, Experiment.submit",
        )
    _pin_datasets(connection, original["spec"])
    view = connection.post(
        "/api/runs",
        {
            "run_id": new_run_id(original["experiment"]),
            "experiment": original["experiment"],
            "spec": original["spec"],
            "snapshot_id": original["snapshot_id"],
            "tags": original["tags"],
            "properties": {"runyard.rerun_of": original["run_id"]},
            "submitted_by": user_name(),
        },
    )
    if detach:
        print(view["run_id"])
        return 0
    return follow_to_exit(connection, view)


def _pin_datasets(connection: Connection, spec: dict[str, Any]) -> None:
    """Read changed datasets before submitting: a single request must not take hours."""
    from runyard.sdk.data.pinning import pin
    from runyard.spec.dataset import DatasetDefinition
    from runyard.spec.json import from_json

    for use in spec.get("data") or ():
        if use["dataset"]:
            dataset = connection.get("/api/datasets/one", id=use["dataset"]["id"])
            pin(connection, from_json(DatasetDefinition, dataset["definition"]))
