"""The `runyard export` command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from runyard.cli.command import Command, new_app
from runyard.cli.follow import print_status
from runyard.cli.formatting import count_text
from runyard.cli.progress import progress_bar
from runyard.cli.run_lookup import complete_run, find_run
from runyard.client.connection import Connection
from runyard.errors import RunNotFound, UserErrorException
from runyard.sdk.core.validation import did_you_mean

app = new_app()


@app.command(cls=Command)
def export(
    what: Annotated[
        Optional[str],
        typer.Argument(
            metavar="RUN|EXPERIMENT", help="A run, or an experiment with all its runs.", autocompletion=complete_run
        ),
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="All runs of this yard.")] = False,
    format: Annotated[str, typer.Option("--format", "-f", metavar="FORMAT", help="parquet, csv or json.")] = "csv",
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FOLDER", help="Destination folder.")
    ] = "runyard-export",
    files: Annotated[bool, typer.Option("--files", help="Also export the files of the runs.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
) -> None:
    """Export runs and their metrics for other programs.

    CSV and Parquet: runs.* has one row per run with parameters, tags and last metrics; metrics.* has one row per
    point. JSON: runs.json contains everything, including logged tables, images and texts.
    """
    from runyard.exchange.export_runs import RunSelection, select_rows
    from runyard.exchange.export_runs import export as write

    connection = Connection()
    choice = RunSelection() if all else _select(connection, what)
    if all and what is not None:
        raise UserErrorException(f"{what!r} and --all are mutually exclusive", hint="omit one of them")
    rows = select_rows(connection, choice)
    if not rows:
        raise UserErrorException("no runs to export", hint="list runs with runyard runs")
    with progress_bar("export", len(rows)) as advance:
        result = write(connection, rows, Path(output), format, files=files, force=force, on_run=lambda row: advance())
    for path in result.paths:
        print(path)
    summary = f"{count_text(result.runs, 'run')}, {count_text(result.points, 'point')}"
    summary += f", {count_text(result.files, 'file')}" if files else ""
    print_status(summary)
    if result.skipped_series:
        print_status(
            f"{result.skipped_series:,} series of tables, images or texts were skipped; use --format json for those"
        )


def _select(connection: Connection, what: str | None) -> Any:
    from runyard.exchange.export_runs import RunSelection

    names = [experiment["name"] for experiment in connection.get("/api/experiments")]
    if what is None:
        raise UserErrorException("nothing to export was specified", hint="specify a run, an experiment, or --all")
    if what in names:
        return RunSelection(experiment=what)
    try:
        return RunSelection(run_id=find_run(connection, what)["run_id"])
    except RunNotFound:
        listing = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        raise UserErrorException(
            f"no run or experiment {what!r}",
            hint=f"{did_you_mean(what, names)}experiments: {listing or 'none'}",
        ) from None
