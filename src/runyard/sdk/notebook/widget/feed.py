"""What a run's picture is made of, whole at first and then only what is new."""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Iterator
from typing import Any

from runyard.client.connection import Connection
from runyard.lifecycle.state import TERMINAL
from runyard.wire.points import NO_STEP, WirePoints, decode_points

MOST_SERIES = 24
_MOST_POINTS = 600
_MOST_NEW = 2000  # beyond that a series comes anew, down-sampled, instead of point by point
_TAIL_BYTES = 32 * 1024
_ENDED = frozenset(state.value for state in TERMINAL)
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


class RunFeed:
    """Of one run, for one picture: it remembers what it has given. Not for several threads at once."""

    def __init__(self, connection: Connection, run_id: str) -> None:
        self._connection = connection
        self._run_id = run_id
        self.view: dict[str, Any] = {}
        self._shown: dict[str, Any] = {}
        self._cursors: dict[str, int] = {}
        self._log_name, self._log_at, self._more = "", 0, 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a letter may come in two pieces
        self._events: Iterator[tuple[str, Any]] | None = None

    @property
    def ended(self) -> bool:
        return self.view.get("status") in _ENDED

    def whole(self) -> dict[str, Any]:
        """Everything that is shown; the points of long series down-sampled."""
        self._cursors, self._log_name, self._log_at, self._more, self._shown = {}, "", 0, 0, {}
        return {"whole": True, "more": 0, **self.news()}

    def news(self) -> dict[str, Any]:
        """What is there since the last time; empty when nothing is."""
        self.view = self._connection.get(f"/api/runs/{self._run_id}")  # first: what is read after an end is all
        found: dict[str, Any] = {}
        shown = compact(self.view)
        if shown != self._shown:
            found["view"] = self._shown = shown
        points = self._points(found)
        if points:
            found["points"] = points
        log = self.new_log()
        if log:
            found["log"] = log
        return found

    def wait(self) -> None:
        """Until the yard says that something has changed; it may say so for things that are not shown."""
        if self._events is None:
            self._events = self._connection.events(f"/api/runs/{self._run_id}/live")
        try:
            if next(self._events, None) is None:
                self._events = None
        except BaseException:
            self._events = None
            raise

    def _points(self, found: dict[str, Any]) -> dict[str, Any]:
        series = self._connection.get(f"/api/runs/{self._run_id}/series")
        scalars = [one for one in series if one["kind"] == "scalar" and not one["name"].startswith("system/")]
        more = max(len(scalars) - MOST_SERIES, 0)
        if more != self._more:
            found["more"] = self._more = more
        points = {}
        for one in scalars[:MOST_SERIES]:
            name, have = one["name"], self._cursors.get(one["name"], 0)
            if one["count"] <= have:
                continue
            anew = not have or one["count"] - have > _MOST_NEW
            query = {"most": _MOST_POINTS} if anew else {"after": have}
            data = self._connection.read(f"/api/runs/{self._run_id}/metrics/{name}", **query)
            decoded = decode_points(data)
            points[name] = {"whole": anew, **_columns(decoded, have)}
            self._cursors[name] = decoded.next
        return points

    def new_log(self) -> str:
        """New text of the log that speaks for the run: the script's, before that the environment's or the sweep's."""
        logs = self._connection.get(f"/api/runs/{self._run_id}/logs")
        chosen = _speaking([log for log in logs if log["size"]])
        if chosen is None:
            return ""
        title = ""
        if chosen["name"] != self._log_name:
            title = f"\n{chosen['name']}\n" if self._log_name else ""
            self._log_name, self._log_at = chosen["name"], max(chosen["size"] - _TAIL_BYTES, 0)
            self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        if chosen["size"] <= self._log_at:
            return ""
        begin = max(self._log_at, chosen["size"] - _TAIL_BYTES)
        path = f"/api/runs/{self._run_id}/logs/{chosen['name']}"
        data = self._connection.read(path, **{"from": begin, "limit": chosen["size"] - begin})
        self._log_at = begin + len(data)
        return title + _plain(self._decoder.decode(data))


def compact(view: dict[str, Any]) -> dict[str, Any]:
    """Of a run, what its picture says. Why it failed comes in words, its last lines after that."""
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


def settled(text: str) -> str:
    """Of a progress bar that writes over itself, its last state."""
    return "\n".join(line.rpartition("\r")[2] for line in text.split("\n"))


def _plain(text: str) -> str:
    return _ANSI.sub("", text).replace("\r\n", "\n")


def _speaking(logs: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Of a gang, the first process speaks for all."""
    driver = [log for log in logs if "70_driver_log" in log["name"]]
    if driver:
        return min(driver, key=lambda log: (log.get("rank") or 0, log["name"]))
    return max(logs, key=lambda log: str(log["name"]), default=None)


def _columns(points: WirePoints, before: int) -> dict[str, list[Any]]:
    """Steps where they were given, else the number of the point; what is not a number is None, as JSON has no NaN."""
    count = len(points.values)
    known = count and all(step != NO_STEP for step in points.steps)
    if known:
        x: list[Any] = list(points.steps)
    else:
        total = points.next - before if before else points.next
        x = [before + index * max(total, 1) / max(count, 1) for index in range(count)]
        x = [round(place) for place in x]
    return {"x": x, "y": [value if math.isfinite(value) else None for value in points.values]}
