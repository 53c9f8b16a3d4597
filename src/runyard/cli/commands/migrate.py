from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from runyard.cli.command import Command, new_app
from runyard.cli.run_lookup import Json, print_json

app = new_app()


@app.command(cls=Command)
def migrate(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A script, a notebook, or a folder with such.")],
    as_json: Json = False,
) -> int:
    """Say what of scripts for the retired SDK runs here.

    Scripts and notebooks are read, not run: names and keywords that are not here, services that only Azure had,
    TensorFlow 1, names that NumPy and other packages removed, downloads from hosts that are gone. Each with its line,
    and in notebooks its cell, counted from 1 over all cells. The exit code is 1 if something needs attention.
    """
    from runyard.cli.migration_text import print_report
    from runyard.migration.scan import examine

    report = examine(Path(path).expanduser())
    if as_json:
        print_json(report.as_json())
    else:
        print_report(report)
    return 0 if all(file.outcome == "runs" for file in report.files) else 1
