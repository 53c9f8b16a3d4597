"""Follows a run in the terminal: what it waits for, its output, how it ended.

The script's output goes to stdout byte for byte; Runyard's own messages go to stderr.
"""

from __future__ import annotations

import os
import sys
import time

from runyard.cli import run_summary
from runyard.clock import duration_text
from runyard.errors import RunyardException, YardUnavailable

TYPE_CHECKING = False  # importing typing would slow down `runyard run`
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from runyard.client.connection import Connection

    View = dict[str, Any]

_TICK_S = 0.25
_MIN_WAIT_S = 0.4  # shorter waits are not shown
_SECOND_CTRL_C_S = 2.0
_ATTEMPTS = 5
_WAITING = {"NotStarted": "submitted", "Preparing": "preparing", "Queued": "queued", "Starting": "starting"}


class ReportedExit(int):
    """An exit code whose reason has been printed, so that "interrupted" is not printed again."""


INTERRUPTED = ReportedExit(130)


def follow_to_exit(connection: Connection, view: View, *, warned: bool = False) -> int:
    """Follow a run that was just submitted; returns the script's exit code.

    Args:
        connection: The yard.
        view: The run.
        warned: True if its warnings have already been printed.
    """
    print_status(run_summary.headline(view))
    if not warned:
        _warn(view["warnings"])
    try:
        end, summary = _follow(connection, view)
    except KeyboardInterrupt:
        return _interrupted(connection, view["run_id"])
    _warn([warning for warning in end["warnings"] if warning not in view["warnings"]])
    for line in run_summary.lines(end, summary):
        print_status(line)
    return run_summary.exit_code(end)


def follow_log(connection: Connection, view: View, name_part: str) -> View:
    """Print logs whose names contain ``name_part`` until the run ends; show what it waits for before that."""
    waiting = _WaitingLine(view)
    try:
        for kind, data in _events(connection, view["run_id"], tick_s=_TICK_S):
            if kind == "log" and name_part in data["name"].rpartition("/")[2]:
                waiting.clear()
                write_out(data["text"].encode("latin-1"))
            elif kind == "status":
                waiting.update(data)
            elif kind == "tick":
                waiting.tick()
            elif kind == "end":
                end: View = data
                return end
    finally:
        waiting.clear()
    raise AssertionError("the event stream ended without an end event")


def print_status(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def write_out(data: bytes) -> None:
    """Write to stdout without decoding and buffering."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(1, rest) :]


def _warn(warnings: list[str]) -> None:
    for warning in warnings:
        print_status(f"warning: {warning}")


def _follow(connection: Connection, view: View) -> tuple[View, View]:
    waiting = _WaitingLine(view)
    summary: View = {"metrics": {}, "files": []}
    ends_with_newline = True
    for kind, data in _events(connection, view["run_id"], tick_s=_TICK_S, summary=True):
        if kind == "log" and ("/70_" in data["name"] or data["name"].endswith("/hyperdrive.txt")):
            waiting.clear()
            output = data["text"].encode("latin-1")
            write_out(output)
            ends_with_newline = output.endswith(b"\n")
        elif kind == "status":
            waiting.update(data)
        elif kind == "tick":
            waiting.tick()
        elif kind == "summary":
            summary = data
        elif kind == "end":
            waiting.clear()
            if not ends_with_newline and sys.stderr.isatty() and sys.stdout.isatty():
                print_status("")  # do not continue the script's last line
            return data, summary
    raise AssertionError("the event stream ended without an end event")


def _events(connection: Connection, run_id: str, **query: Any) -> Iterator[tuple[str, Any]]:
    """Events until the run ends. Survives a restart of the yard; logs continue at the last offset."""
    offsets: dict[str, int] = {}
    failures = 0
    while True:
        after = ",".join(f"{name}:{offset}" for name, offset in offsets.items())
        try:
            for kind, data in connection.events(f"/api/runs/{run_id}/follow", after=after, exact=True, **query):
                if kind == "log":
                    offsets[data["name"].rpartition("/")[2]] = data["offset"]
                failures = 0
                yield kind, data
                if kind == "end":
                    return
        except BrokenPipeError:
            raise  # our stdout, not the connection to the yard
        except (OSError, YardUnavailable):
            failures += 1
            if failures == _ATTEMPTS:
                raise
            time.sleep(0.2)  # the next attempt restarts the yard if it is not running


class _WaitingLine:
    """Shows what a pending run waits for: one line that is overwritten; separate lines without a terminal."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._started = time.monotonic()
        self._terminal = sys.stderr.isatty()
        self._is_visible = False
        self._last_text = ""
        self._last_printed = 0.0

    def update(self, view: View) -> None:
        self._view = view
        if view["status"] not in _WAITING:
            self.clear()
        elif self._is_visible or not self._terminal:
            self.tick()

    def tick(self) -> None:
        word = _WAITING.get(self._view["status"])
        waited_s = time.monotonic() - self._started
        if word is None or waited_s < _MIN_WAIT_S:
            return
        activity = self._view["activity"]
        if self._terminal:
            duration = f"{waited_s:.0f} s" if waited_s < 60 else duration_text(waited_s)
            self._draw(
                f"{activity}, {duration}"
                if activity.startswith(word)
                else run_summary.with_activity(f"{word} {duration}", activity)
            )
        elif (
            run_summary.with_activity(word, activity) != self._last_text and time.monotonic() - self._last_printed >= 1
        ):
            self._last_text, self._last_printed = run_summary.with_activity(word, activity), time.monotonic()
            print_status(self._last_text)

    def clear(self) -> None:
        if self._is_visible:
            self._is_visible = False
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def _draw(self, line: str) -> None:
        width = os.get_terminal_size(sys.stderr.fileno()).columns or 80
        self._is_visible = True
        sys.stderr.write(f"\r\x1b[K{line[: width - 1]}")
        sys.stderr.flush()


def _interrupted(connection: Connection, run_id: str) -> int:
    """The first Ctrl-C stops following; a second one soon after cancels the run."""
    print_status(f"\nstopped following; the run continues:  runyard logs -f {run_id}")
    try:
        print_status(
            f"press Ctrl-C again within {_SECOND_CTRL_C_S:.0f} s to cancel it, or run  runyard cancel {run_id}"
        )
        time.sleep(_SECOND_CTRL_C_S)
    except KeyboardInterrupt:
        try:
            connection.post(f"/api/runs/{run_id}/cancel")
            print_status("canceling …")
            end = next(
                data for kind, data in connection.events(f"/api/runs/{run_id}/follow", logs=False) if kind == "end"
            )
            print_status(run_summary.lines(end, {"metrics": {}, "files": []})[0])
        except KeyboardInterrupt:
            print_status(f"not waiting for it to end:  runyard show {run_id}")
        except (OSError, RunyardException) as error:
            print_status(f"error: {error}")
    return INTERRUPTED
