"""The data of the widget: the full state first, then only changes."""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Iterator
from typing import Any

from runyard.client.connection import Connection
from runyard.lifecycle.state import TERMINAL
from runyard.wire.points import NO_STEP, WirePoints, decode_points

MAX_SERIES = 24
_MAX_POINTS = 600
_MAX_NEW_POINTS = 2000  # with more new points, the complete series is sent again, down-sampled
_TAIL_BYTES = 32 * 1024
_ENDED = frozenset(state.value for state in TERMINAL)
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


class RunFeed:
    """The changes of one run for one widget: it remembers what was returned. Not thread-safe."""

    def __init__(self, connection: Connection, run_id: str) -> None:
        self._connection = connection
        self._run_id = run_id
        self.view: dict[str, Any] = {}
        self._sent_view: dict[str, Any] = {}
        self._cursors: dict[str, int] = {}
        self._log_name, self._log_position, self._more = "", 0, 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a character may arrive in two pieces
        self._events: Iterator[tuple[str, Any]] | None = None

    @property
    def ended(self) -> bool:
        return self.view.get("status") in _ENDED

    def full_update(self) -> dict[str, Any]:
        """Return the full state, with long series down-sampled."""
        self._cursors, self._log_name, self._log_position, self._more, self._sent_view = {}, "", 0, 0, {}
        return {"full": True, "more": 0, **self.update()}

    def update(self) -> dict[str, Any]:
        """Return the changes since the last call; empty without changes."""
        # the status first, so that the data of an ended run is complete
        self.view = self._connection.get(f"/api/runs/{self._run_id}")
        changes: dict[str, Any] = {}
        view = compact(self.view)
        if view != self._sent_view:
            changes["view"] = self._sent_view = view
        points = self._points(changes)
        if points:
            changes["points"] = points
        log = self.new_log()
        if log:
            changes["log"] = log
        return changes

    def wait(self) -> None:
        """Wait until the yard reports a change, which may be one that the widget does not show."""
        if self._events is None:
            self._events = self._connection.events(f"/api/runs/{self._run_id}/live")
        try:
            if next(self._events, None) is None:
                self._events = None
        except BaseException:
            self._events = None
            raise

    def _points(self, changes: dict[str, Any]) -> dict[str, Any]:
        all_series = self._connection.get(f"/api/runs/{self._run_id}/series")
        scalars = [s for s in all_series if s["kind"] == "scalar" and not s["name"].startswith("system/")]
        more = max(len(scalars) - MAX_SERIES, 0)
        if more != self._more:
            changes["more"] = self._more = more
        points = {}
        for series in scalars[:MAX_SERIES]:
            name, cursor = series["name"], self._cursors.get(series["name"], 0)
            if series["count"] <= cursor:
                continue
            is_full = not cursor or series["count"] - cursor > _MAX_NEW_POINTS
            query = {"most": _MAX_POINTS} if is_full else {"after": cursor}
            data = self._connection.read(f"/api/runs/{self._run_id}/metrics/{name}", **query)
            decoded = decode_points(data)
            points[name] = {"full": is_full, **_columns(decoded, cursor)}
            self._cursors[name] = decoded.next
        return points

    def new_log(self) -> str:
        """Return new text of the main log: the script's, before its start that of the environment or the sweep."""
        logs = self._connection.get(f"/api/runs/{self._run_id}/logs")
        log = _main_log([log for log in logs if log["size"]])
        if log is None:
            return ""
        title = ""
        if log["name"] != self._log_name:
            title = f"\n{log['name']}\n" if self._log_name else ""
            self._log_name, self._log_position = log["name"], max(log["size"] - _TAIL_BYTES, 0)
            self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        if log["size"] <= self._log_position:
            return ""
        start = max(self._log_position, log["size"] - _TAIL_BYTES)
        path = f"/api/runs/{self._run_id}/logs/{log['name']}"
        data = self._connection.read(path, **{"from": start, "limit": log["size"] - start})
        self._log_position = start + len(data)
        return title + _plain(self._decoder.decode(data))


def compact(view: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that the widget shows; for a failed run, the error message and the last lines of output."""
    end = view["end"] or {}
    failed = view["status"] == "Failed"
    return {
        "run_id": view["run_id"],
        "experiment": view["experiment"],
        "status": view["status"],
        "activity": view["activity"],
        "started_at": view["started_at"],
        "ended_at": view["ended_at"],
        "error": (end.get("message") or end.get("reason") or "") if failed else "",
        "details": (end.get("traceback") or end.get("last_lines") or "") if failed else "",
    }


def final_lines(text: str) -> str:
    """Return text with only the last state of progress bars that overwrite themselves."""
    return "\n".join(line.rpartition("\r")[2] for line in text.split("\n"))


def _plain(text: str) -> str:
    return _ANSI.sub("", text).replace("\r\n", "\n")


def _main_log(logs: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the log of the first rank, or the newest log before the script has one."""
    driver = [log for log in logs if "70_driver_log" in log["name"]]
    if driver:
        return min(driver, key=lambda log: (log.get("rank") or 0, log["name"]))
    return max(logs, key=lambda log: str(log["name"]), default=None)


def _columns(points: WirePoints, offset: int) -> dict[str, list[Any]]:
    """Return x (steps, or indices of points without a step) and y; JSON has no NaN, so None replaces it."""
    count = len(points.values)
    if count and all(step != NO_STEP for step in points.steps):
        x = list(points.steps)
    else:
        total = points.next - offset if offset else points.next
        x = [round(offset + index * max(total, 1) / max(count, 1)) for index in range(count)]
    return {"x": x, "y": [value if math.isfinite(value) else None for value in points.values]}
