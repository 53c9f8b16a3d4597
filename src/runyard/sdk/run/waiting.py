"""Waiting for a run, printing its logs as they are written."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from runyard.client.connection import Connection
from runyard.clock import duration_text
from runyard.errors import ActivityFailedException, ExperimentExecutionException, YardUnavailable


def wait(connection: Connection, view: dict[str, Any], show_output: bool) -> tuple[dict[str, Any], list[str] | None]:
    """Wait for the end of a run. A yard that stops in between is started again, and the logs continue.

    Returns:
        The view of the ended run and the names of its files; None from an older yard, which does not send them.
    """
    printer = _Printer(view) if show_output else None
    offsets: dict[str, int] = {}
    while True:
        after = ",".join(f"{name}:{offset}" for name, offset in offsets.items())
        files: list[str] | None = None
        try:
            for event, data in connection.events(
                f"/api/runs/{view['run_id']}/follow", logs=show_output, after=after, files=True
            ):
                if event == "log" and printer:
                    offsets[data["name"].rpartition("/")[2]] = data["offset"]
                    printer.log(data["name"], data["text"])
                elif event == "status" and printer:
                    printer.status(data)
                elif event == "files":
                    files = [file["name"] for file in data]
                elif event == "end":
                    if printer:
                        printer.end(data)
                    return data, files
        except KeyboardInterrupt:
            if printer is None:
                raise
            raise ExperimentExecutionException(
                f"stopped showing the output of run {view['run_id']}; the run continues",
                hint="run.cancel() ends it; run.wait_for_completion(show_output=True) shows it again",
            ) from None
        except (OSError, YardUnavailable):
            time.sleep(0.2)  # the connection broke; the next attempt starts the yard if it is not running


def raise_if_failed(details: dict[str, Any]) -> None:
    if details["status"] == "Failed":
        error = details.get("error", {}).get("error", {})
        message = str(error.get("message", "")) or json.dumps(error)
        raise ActivityFailedException(details.get("error", {}), hint="", message_text=message)


class _Printer:
    """Prints in the format of the SDK v1's notebooks: the run, each log under its name, a summary."""

    def __init__(self, view: dict[str, Any]) -> None:
        self._run_id = view["run_id"]
        self._url = Path(view["folder"]).as_uri()  # the same as run.get_portal_url()
        self._current_log = ""
        self._last_activity = ""
        self._write(f"RunId: {self._run_id}\nWeb View: {self._url}\n")

    def log(self, name: str, text: str) -> None:
        if name != self._current_log:
            self._current_log = name
            self._write(f"\nStreaming {name}\n{'=' * (len(name) + 10)}\n\n")
        self._write(text)

    def status(self, view: dict[str, Any]) -> None:
        """Print the reason for waiting. While preparing, the environment's log already shows each step."""
        if view["status"] == "Queued" and view["activity"] and view["activity"] != self._last_activity:
            self._last_activity = view["activity"]
            self._write(f"Queued: {view['activity']}\n")

    def end(self, view: dict[str, Any]) -> None:
        duration_s = (view["ended_at"] or 0) - view["created_at"]
        self._write(f"\nExecution Summary\n=================\nRunId: {self._run_id}\nWeb View: {self._url}\n")
        self._write(f"{view['status']} after {duration_text(duration_s)}")
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
