"""The `runyard import` command."""

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
_MAX_NAMES = 5


@app.command(cls=Command)
def import_(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="mlflow, tensorboard or wandb-offline.")],
    path: Annotated[str, typer.Argument(metavar="PATH", help="Its file or folder.")],
) -> None:
    """Import runs of another program, with their times, steps, parameters, tags and files.

    mlflow: a folder mlruns, a database mlflow.db, or the folder that contains one. tensorboard: a folder with event
    files; each folder is a run. wandb-offline: a folder wandb, or one run-….wandb.
    Repeating an import adds only what is new.
    """
    from runyard.exchange.detect import find_runs
    from runyard.exchange.import_runs import import_runs

    runs = find_runs(source, Path(path).expanduser())
    with progress_bar("import", None) as advance:
        tally = import_runs(Connection(), runs, lambda run: advance())
    total = tally.created + tally.updated + tally.unchanged + tally.models + tally.unchanged_models
    if not total:
        raise UserErrorException(f"no runs found in {path!r}", hint="deleted runs are not imported")
    parts = [count_text(tally.created, "new run")]
    parts += [f"{tally.updated:,} updated"] if tally.updated else []
    parts += [f"{tally.unchanged:,} unchanged"] if tally.unchanged else []
    for name, missing in tally.missing_files.items():
        more = f" and {len(missing) - _MAX_NAMES:,} more" if len(missing) > _MAX_NAMES else ""
        print_status(f"warning: {name} lacks files that no longer exist: {', '.join(missing[:_MAX_NAMES])}{more}")
    data = [count_text(tally.points, "point"), count_text(tally.files, "file")]
    data += [count_text(tally.models, "logged model")] if tally.models else []
    print_status(f"{', '.join(parts)}; {', '.join(data)}")
