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
            help="Files, or folders of files. Default: all but the logs.",
            autocompletion=complete_file,
        ),
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="All files, with the logs.")] = False,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FOLDER", help="Where they go.")] = ".",
) -> None:
    """Download files of a run, under their own names."""
    connection = Connection()
    run_id = find_run(connection, run)["run_id"]
    chosen = _chosen(run_id, connection.get(f"/api/runs/{run_id}/files"), names or [], all)
    total = sum(file["size"] for file in chosen)
    folder = Path(output)
    with _progress(total) as advance:
        for file in chosen:
            _fetch(connection, run_id, file["name"], folder, advance)
            print(folder / file["name"])
    print_status(f"{count_text(len(chosen), 'file')}, {size_text(total)}")


def _chosen(run_id: str, files: list[dict[str, Any]], names: list[str], all: bool) -> list[dict[str, Any]]:
    if not names:
        found = [file for file in files if all or not file["name"].startswith(_LOGS)]
        if not found:
            hint = "--all downloads its logs" if files else "it has none at all yet"
            raise UserErrorException(f"run {run_id} kept no files", hint=hint)
        return found
    known = {file["name"]: file for file in files}
    chosen: dict[str, dict[str, Any]] = {}
    for name in names:
        below = [file for file in files if file["name"] == name or file["name"].startswith(name.rstrip("/") + "/")]
        if not below:
            shown = ", ".join(list(known)[:8]) + (", …" if len(known) > 8 else "")
            raise UserErrorException(
                f"run {run_id} has no file {name!r}",
                hint=f"{did_you_mean(name, known)}its files: {shown or 'none yet'}",
            )
        chosen.update({file["name"]: file for file in below})
    return list(chosen.values())


def _fetch(connection: Connection, run_id: str, name: str, folder: Path, advance: Callable[[int], None]) -> None:
    """To a name beside it first: a download that breaks off leaves no half file under the right name."""
    target = folder / name
    if not target.resolve().is_relative_to(folder.resolve()):
        raise UserErrorException(f"{name!r} leads out of {str(folder)!r}", hint="choose another folder with -o")
    part = target.with_name(f".{target.name}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(part, "wb") as out:
            for piece in connection.stream(f"/api/runs/{run_id}/files/{name}"):
                out.write(piece)
                advance(len(piece))
        part.replace(target)
    except OSError as error:
        raise UserErrorException(
            f"{target} cannot be written: {error.strerror}", hint="choose another folder with -o"
        ) from error
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, for what takes long enough to look at."""
    if not sys.stderr.isatty() or total < 10_000_000:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("download", total=total)
        yield lambda count: bar.advance(task, count)
