from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from runyard.cli.command import Command, new_app
from runyard.cli.follow import print_status
from runyard.cli.formatting import count_text
from runyard.cli.progress import progress_bar
from runyard.client.connection import Connection
from runyard.errors import UserErrorException

app = new_app()


@app.command(cls=Command)
def import_(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="mlflow, tensorboard or wandb-offline.")],
    path: Annotated[str, typer.Argument(metavar="PATH", help="What it left on disk.")],
) -> None:
    """Import runs of another program, with their times, steps, parameters, tags and files.

    mlflow: a folder mlruns, a database mlflow.db, or the folder that holds one. tensorboard: a folder with event
    files, each folder below it a run. wandb-offline: a folder wandb, or one run-….wandb.
    Importing again changes nothing; what grew meanwhile is added.
    """
    from runyard.exchange.detect import find_runs
    from runyard.exchange.import_runs import import_runs

    found = find_runs(source, Path(path).expanduser())
    with progress_bar("import", None) as advance:
        tally = import_runs(Connection(), found, lambda run: advance())
    total = tally.new + tally.grown + tally.same
    if not total:
        raise UserErrorException(f"there are no runs in {path!r}", hint="deleted ones are not imported")
    said = [count_text(tally.new, "new run")]
    said += [f"{tally.grown:,} with something new"] if tally.grown else []
    said += [f"{tally.same:,} as they were"] if tally.same else []
    print_status(f"{', '.join(said)}; {count_text(tally.points, 'point')}, {count_text(tally.files, 'file')}")
