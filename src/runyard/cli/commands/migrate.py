"""The `runyard migrate` command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from runyard.cli.command import Command, new_app
from runyard.cli.run_lookup import Json, print_json

app = new_app()


@app.command(cls=Command)
def migrate(
    path: Annotated[str, typer.Argument(metavar="PATH", help="Script, notebook, or folder.")],
    as_json: Json = False,
) -> int:
    """Check which scripts for the retired SDK run unchanged.

    Scripts and notebooks are read, not run. Reports unsupported names and keywords, services that only Azure provides,
    TensorFlow 1, APIs removed from NumPy and other packages, and downloads from hosts that no longer exist, each with
    its line and notebook cell (counted from 1). The exit code is 1 if something needs attention.
    """
    from runyard.cli.migration_text import print_report
    from runyard.migration.scan import scan

    report = scan(Path(path).expanduser())
    if as_json:
        print_json(report.as_json())
    else:
        print_report(report)
    return 0 if all(file.verdict == "runs" for file in report.files) else 1
