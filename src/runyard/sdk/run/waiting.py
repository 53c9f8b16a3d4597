"""Waiting for a run, with its logs on the screen as they are written."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from runyard.client.connection import Connection
from runyard.clock import duration_text
from runyard.errors import ActivityFailedException, ExperimentExecutionException, YardUnavailable
from runyard.lifecycle.state import TERMINAL

_ENDED = frozenset(state.value for state in TERMINAL)


def wait(connection: Connection, view: dict[str, Any], show_output: bool) -> tuple[dict[str, Any], list[str] | None]:
    """The run as it ended, and its files, which an older yard does not tell. A yard that goes away meanwhile is started
    again, and the logs go on where they were."""
    screen = _Screen(view) if show_output else None
    had: dict[str, int] = {}
    while True:
        after = ",".join(f"{name}:{offset}" for name, offset in had.items())
        files: list[str] | None = None
        try:
            for kind, data in connection.events(
                f"/api/runs/{view['run_id']}/follow", logs=show_output, after=after, files=True
            ):
                if kind == "log" and screen:
                    had[data["name"].rpartition("/")[2]] = data["offset"]
                    screen.log(data["name"], data["text"])
                elif kind == "status" and screen:
                    screen.status(data)
                elif kind == "files":
                    files = [file["name"] for file in data]
                elif kind == "end":
                    if screen:
                        screen.end(data)
                    return data, files
        except KeyboardInterrupt:
            if screen is None:
                raise
            raise ExperimentExecutionException(
                f"the output of run {view['run_id']} is not shown any more; the run goes on",
                hint="run.cancel() ends it; run.wait_for_completion(show_output=True) shows it again",
            ) from None
        except (OSError, YardUnavailable):
            time.sleep(0.2)  # the connection broke: the next attempt starts the yard if it is gone


def verdict(details: dict[str, Any], raise_on_error: bool) -> dict[str, Any]:
    if raise_on_error and details["status"] == "Failed":
        error = details.get("error", {}).get("error", {})
        raise ActivityFailedException(details.get("error", {}), hint="", message_text=_told(error))
    return details


def _told(error: dict[str, Any]) -> str:
    return str(error.get("message", "")) or json.dumps(error)


class _Screen:
    """The lines that notebooks of the SDK v1 show: the run, each log under its name, a summary."""

    def __init__(self, view: dict[str, Any]) -> None:
        self._run_id = view["run_id"]
        self._address = Path(view["folder"]).as_uri()  # as run.get_portal_url() has it
        self._open_log = ""
        self._said = ""
        self._write(f"RunId: {self._run_id}\nWeb View: {self._address}\n")

    def log(self, name: str, text: str) -> None:
        if name != self._open_log:
            self._open_log = name
            title = f"Streaming {name}"
            self._write(f"\n{title}\n{'=' * (len(name) + 10)}\n\n")
        self._write(text)

    def status(self, view: dict[str, Any]) -> None:
        """What is waited for; while preparing, the environment's own log says it line by line."""
        if view["status"] == "Queued" and view["activity"] and view["activity"] != self._said:
            self._said = view["activity"]
            self._write(f"Queued: {view['activity']}\n")

    def end(self, view: dict[str, Any]) -> None:
        took = (view["ended_at"] or 0) - view["created_at"]
        self._write(f"\nExecution Summary\n=================\nRunId: {self._run_id}\nWeb View: {self._address}\n")
        self._write(f"{view['status']} after {duration_text(took)}")
        end = view["end"] or {}
        if view["status"] != "Completed" and end.get("message"):
            self._write(f": {end['message']}")
        self._write("\n\n")

    def _write(self, text: str) -> None:
        try:
            sys.stdout.write(text)
        except UnicodeEncodeError:  # a terminal without UTF-8 must not end the wait
            encoding = sys.stdout.encoding or "ascii"
            sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
        sys.stdout.flush()
