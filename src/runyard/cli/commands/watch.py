"""The `runyard watch` command."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from runyard.cli.command import Command, new_app
from runyard.cli.follow import print_status
from runyard.cli.formatting import count_text
from runyard.client.connection import Connection
from runyard.errors import UserErrorException
from runyard.exchange.wandb_watch import INTERVAL_S, WatchCounts, Watcher

app = new_app()
_LINE_INTERVAL_S = 10.0  # without a terminal
_WORK_FACTOR = 3  # a watcher of many runs uses at most a quarter of a core


@app.command(cls=Command)
def watch(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="wandb.")],
    path: Annotated[str, typer.Argument(metavar="PATH", help="Folder with offline runs: `wandb` of a project.")],
) -> None:
    """Import runs of W&B while they are running.

    New runs of the folder and new points, parameters and files appear in the yard until Ctrl-C. Started again, it
    continues where it was. W&B writes its file every 15 seconds; set WANDB_X_TRANSACTION_LOG_FLUSH_INTERVAL=1 in the
    script's environment to see points sooner.
    """
    if source != "wandb":
        raise UserErrorException(
            f"source must be wandb, got {source!r}", hint="`runyard import` imports runs of other programs once"
        )
    folder = Path(path).expanduser()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # `systemctl stop` ends it like Ctrl-C
    with _progress() as (report, show):
        watcher = Watcher(Connection(), folder, report)
        report(f"watching {folder}; press Ctrl-C to stop")
        try:
            while True:
                started_at = time.monotonic()
                watcher.import_new()
                show(_summary(watcher.counts))
                time.sleep(max(INTERVAL_S, _WORK_FACTOR * (time.monotonic() - started_at)))
        except KeyboardInterrupt:
            pass
    counts = watcher.counts
    print_status(f"stopped: {_summary(counts)}")
    if counts.running:
        print_status(f"continue with  runyard watch wandb {path}")


def _summary(counts: WatchCounts) -> str:
    if not counts.runs:
        return "no runs yet"
    running = f" ({counts.running:,} running)" if counts.running else ""
    points, files = count_text(counts.points, "new point"), count_text(counts.files, "file")
    return f"{count_text(counts.runs, 'run')}{running}; {points}, {files}"


@contextmanager
def _progress() -> Iterator[tuple[Callable[[str], None], Callable[[str], None]]]:
    """Yield functions that print a line and that update the totals: in place, or in lines without a terminal."""
    if not sys.stderr.isatty():
        yield print_status, _TotalsAsLines()
        return
    from rich.console import Console

    console = Console(stderr=True, highlight=False, markup=False)
    with console.status("searching") as status:
        yield console.print, status.update


class _TotalsAsLines:
    def __init__(self) -> None:
        self._last_text = ""
        self._printed_at = 0.0

    def __call__(self, text: str) -> None:
        if text != self._last_text and (not self._last_text or time.monotonic() - self._printed_at >= _LINE_INTERVAL_S):
            self._last_text, self._printed_at = text, time.monotonic()
            print_status(text)
