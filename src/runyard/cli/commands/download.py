"""The `runyard download` command."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from runyard.cli.command import Command, new_app
from runyard.cli.follow import print_status
from runyard.cli.formatting import count_text, size_text
from runyard.cli.run_lookup import RunArgument, complete_file, find_run
from runyard.client.connection import Connection
from runyard.errors import UserErrorException
from runyard.posix.atomic_write import replace_file
from runyard.sdk.core.validation import did_you_mean

app = new_app()
_LOGS = "azureml-logs/"


@app.command(cls=Command)
def download(
    run: RunArgument,
    names: Annotated[
        Optional[list[str]],
        typer.Argument(
            metavar="NAME",
            help="Files or folders. Default: all except logs.",
            autocompletion=complete_file,
        ),
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="All files, including logs.")] = False,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FOLDER", help="Destination folder.")] = ".",
) -> None:
    """Download files of a run."""
    connection = Connection()
    run_id = find_run(connection, run)["run_id"]
    selected = _select(run_id, connection.get(f"/api/runs/{run_id}/files"), names or [], all)
    total = sum(file["size"] for file in selected)
    folder = Path(output)
    with _progress(total) as advance:
        for file in selected:
            _fetch(connection, run_id, file["name"], folder, advance)
            print(folder / file["name"])
    print_status(f"{count_text(len(selected), 'file')}, {size_text(total)}")


def _select(run_id: str, files: list[dict[str, Any]], names: list[str], all: bool) -> list[dict[str, Any]]:
    if not names:
        outputs = [file for file in files if all or not file["name"].startswith(_LOGS)]
        if not outputs:
            hint = "download its logs with --all" if files else "it has no logs either"
            raise UserErrorException(f"run {run_id} has no output files", hint=hint)
        return outputs
    by_name = {file["name"]: file for file in files}
    selected: dict[str, dict[str, Any]] = {}
    for name in names:
        below = [file for file in files if file["name"] == name or file["name"].startswith(name.rstrip("/") + "/")]
        if not below:
            listing = ", ".join(list(by_name)[:8]) + (", …" if len(by_name) > 8 else "")
            raise UserErrorException(
                f"run {run_id} has no file {name!r}",
                hint=f"{did_you_mean(name, by_name)}available files: {listing or 'none'}",
            )
        selected.update({file["name"]: file for file in below})
    return list(selected.values())


def _fetch(connection: Connection, run_id: str, name: str, folder: Path, advance: Callable[[int], None]) -> None:
    """Download to a temporary name, so that an interrupted download leaves no partial file."""
    target = folder / name
    if not target.resolve().is_relative_to(folder.resolve()):
        raise UserErrorException(f"{name!r} is outside of {str(folder)!r}", hint="choose another folder with -o")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(target) as draft:
            connection.download(f"/api/runs/{run_id}/files/{name}", draft, advance)
    except OSError as error:
        raise UserErrorException(
            f"cannot write {target}: {error.strerror}", hint="choose another folder with -o"
        ) from error


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on a terminal for large downloads."""
    if not sys.stderr.isatty() or total < 10_000_000:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("download", total=total)
        yield lambda count: bar.advance(task, count)
