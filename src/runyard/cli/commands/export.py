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
            metavar="RUN|EXPERIMENT", help="A run, or all runs of an experiment.", autocompletion=complete_run
        ),
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="All runs of this yard.")] = False,
    format: Annotated[str, typer.Option("--format", "-f", metavar="FORMAT", help="parquet, csv or json.")] = "csv",
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FOLDER", help="Where the tables go.")
    ] = "runyard-export",
    files: Annotated[bool, typer.Option("--files", help="The files of the runs, too.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier export.")] = False,
) -> None:
    """Export runs and their metrics for other programs.

    CSV and Parquet: runs.* has a row for each run with its parameters, tags and last metrics, metrics.* a row for
    each point. JSON: runs.json has it all, with tables, images and texts that were logged.
    """
    from runyard.exchange.export_runs import Choice, rows_of
    from runyard.exchange.export_runs import export as write

    connection = Connection()
    choice = Choice() if all else _chosen(connection, what)
    if all and what is not None:
        raise UserErrorException(f"{what!r} and --all were both given", hint="leave one of them out")
    rows = rows_of(connection, choice)
    if not rows:
        raise UserErrorException("there are no runs to export", hint="runyard runs lists what there is")
    with progress_bar("export", len(rows)) as advance:
        done = write(connection, rows, Path(output), format, files=files, force=force, told=lambda row: advance())
    for path in done.paths:
        print(path)
    said = f"{count_text(done.runs, 'run')}, {count_text(done.points, 'point')}"
    said += f", {count_text(done.files, 'file')}" if files else ""
    print_status(said)
    if done.left_out:
        print_status(f"{done.left_out:,} series of tables, images or texts: only --format json has those")


def _chosen(connection: Connection, what: str | None) -> Any:
    from runyard.exchange.export_runs import Choice

    names = [experiment["name"] for experiment in connection.get("/api/experiments")]
    if what is None:
        raise UserErrorException("say what to export", hint="a run, an experiment, or --all")
    if what in names:
        return Choice(experiment=what)
    try:
        return Choice(run_id=find_run(connection, what)["run_id"])
    except RunNotFound:
        known = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        raise UserErrorException(
            f"there is no run and no experiment {what!r}",
            hint=f"{did_you_mean(what, names)}experiments: {known or 'none yet'}",
        ) from None
