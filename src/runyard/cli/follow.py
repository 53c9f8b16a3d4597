"""A run on the screen: what it waits for, its own output exactly as written, how it ended.

The script's output goes to stdout byte for byte; everything that is ours goes to stderr.
"""

from __future__ import annotations

import os
import sys
import time

from runyard.cli import run_summary
from runyard.clock import duration_text
from runyard.errors import RunyardException, YardUnavailable

TYPE_CHECKING = False  # typing itself takes a tenth of the time that `runyard run` may take
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from runyard.client.connection import Connection

    View = dict[str, Any]

_TICK_S = 0.25
_WORTH_SAYING_S = 0.4  # what is over sooner is not worth a line
_SECOND_CTRL_C_S = 2.0
_ATTEMPTS = 5
_WAITING = {"NotStarted": "submitted", "Preparing": "preparing", "Queued": "queued", "Starting": "starting"}


class Told(int):
    """An exit code whose reason was said already: nobody needs to read "interrupted" below it."""


INTERRUPTED = Told(130)


def follow_to_exit(connection: Connection, view: View, *, warned: bool = False) -> int:
    """Follows a run that was just submitted; the exit code is the script's. ``warned``: its warnings were shown."""
    say(run_summary.headline(view))
    if not warned:
        _warn(view["warnings"])
    try:
        end, summary = _follow(connection, view)
    except KeyboardInterrupt:
        return _interrupted(connection, view["run_id"])
    _warn([warning for warning in end["warnings"] if warning not in view["warnings"]])
    for line in run_summary.lines(end, summary):
        say(line)
    return run_summary.exit_code(end)


def follow_log(connection: Connection, view: View, wanted: str) -> View:
    """The logs whose name contains ``wanted``, until the run ends; what it waits for as long as it waits."""
    waiting = _WaitingLine(view)
    try:
        for kind, data in _events(connection, view["run_id"], tick_s=_TICK_S):
            if kind == "log" and wanted in data["name"].rpartition("/")[2]:
                waiting.clear()
                write_out(data["text"].encode("latin-1"))
            elif kind == "status":
                waiting.now(data)
            elif kind == "tick":
                waiting.tick()
            elif kind == "end":
                end: View = data
                return end
    finally:
        waiting.clear()
    raise AssertionError("the stream of a run ends with its end")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def write_out(data: bytes) -> None:
    """Straight to stdout: no decoding, no buffer."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(1, rest) :]


def _warn(warnings: list[str]) -> None:
    for warning in warnings:
        say(f"warning: {warning}")


def _follow(connection: Connection, view: View) -> tuple[View, View]:
    waiting = _WaitingLine(view)
    summary: View = {"metrics": {}, "files": []}
    whole_line = True
    for kind, data in _events(connection, view["run_id"], tick_s=_TICK_S, summary=True):
        if kind == "log" and ("/70_" in data["name"] or data["name"].endswith("/hyperdrive.txt")):
            waiting.clear()
            output = data["text"].encode("latin-1")
            write_out(output)
            whole_line = output.endswith(b"\n")
        elif kind == "status":
            waiting.now(data)
        elif kind == "tick":
            waiting.tick()
        elif kind == "summary":
            summary = data
        elif kind == "end":
            waiting.clear()
            if not whole_line and sys.stderr.isatty() and sys.stdout.isatty():
                say("")  # ours must not continue the script's last line
            return data, summary
    raise AssertionError("the stream of a run ends with its end")


def _events(connection: Connection, run_id: str, **query: Any) -> Iterator[tuple[str, Any]]:
    """Until the end, also across a yard that goes away meanwhile: the logs go on where they were."""
    had: dict[str, int] = {}
    failures = 0
    while True:
        after = ",".join(f"{name}:{offset}" for name, offset in had.items())
        try:
            for kind, data in connection.events(f"/api/runs/{run_id}/follow", after=after, exact=True, **query):
                if kind == "log":
                    had[data["name"].rpartition("/")[2]] = data["offset"]
                failures = 0
                yield kind, data
                if kind == "end":
                    return
        except BrokenPipeError:
            raise  # ours, not the yard's: the reader of our output has gone
        except (OSError, YardUnavailable):
            failures += 1
            if failures == _ATTEMPTS:
                raise
            time.sleep(0.2)  # the connection broke: the next attempt starts the yard if it is gone


class _WaitingLine:
    """What a run that does not run yet waits for: one line that is written over; without a terminal, plain lines."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._began = time.monotonic()
        self._terminal = sys.stderr.isatty()
        self._shown = False
        self._said = ""
        self._said_at = 0.0

    def now(self, view: View) -> None:
        self._view = view
        if view["status"] not in _WAITING:
            self.clear()
        elif self._shown or not self._terminal:
            self.tick()

    def tick(self) -> None:
        word = _WAITING.get(self._view["status"])
        waited_s = time.monotonic() - self._began
        if word is None or waited_s < _WORTH_SAYING_S:
            return
        doing = self._view["activity"]
        if self._terminal:
            since = f"{waited_s:.0f} s" if waited_s < 60 else duration_text(waited_s)
            self._draw(
                f"{doing}, {since}" if doing.startswith(word) else run_summary.with_doing(f"{word} {since}", doing)
            )
        elif run_summary.with_doing(word, doing) != self._said and time.monotonic() - self._said_at >= 1:
            self._said, self._said_at = run_summary.with_doing(word, doing), time.monotonic()
            say(self._said)

    def clear(self) -> None:
        if self._shown:
            self._shown = False
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def _draw(self, line: str) -> None:
        width = os.get_terminal_size(sys.stderr.fileno()).columns or 80
        self._shown = True
        sys.stderr.write(f"\r\x1b[K{line[: width - 1]}")
        sys.stderr.flush()


def _interrupted(connection: Connection, run_id: str) -> int:
    """The first Ctrl-C is for us, not for the run; a second one soon after is for the run."""
    say(f"\nstopped following; the run goes on:  runyard logs -f {run_id}")
    try:
        say(f"Ctrl-C again within {_SECOND_CTRL_C_S:.0f} s cancels it; so does  runyard cancel {run_id}")
        time.sleep(_SECOND_CTRL_C_S)
    except KeyboardInterrupt:
        try:
            connection.post(f"/api/runs/{run_id}/cancel")
            say("cancelling …")
            end = next(
                data for kind, data in connection.events(f"/api/runs/{run_id}/follow", logs=False) if kind == "end"
            )
            say(run_summary.lines(end, {"metrics": {}, "files": []})[0])
        except KeyboardInterrupt:
            say(f"not waiting for its end:  runyard show {run_id}")
        except (OSError, RunyardException) as error:
            say(f"error: {error}")
    return INTERRUPTED
