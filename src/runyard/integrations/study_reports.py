"""Sends the trials of an Optuna study to the yard, without delaying the study."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Optional

from runyard.errors import RunyardException, YardUnavailable

log = logging.getLogger("runyard")
_BATCH = 100
_MAX_WAIT_S = 30.0  # for the report of a finished trial, while the yard responds
_RETRY_S = 2.0


@dataclass
class TrialState:
    """The current state of a trial, with the fields of a `StudyTrial` of the API."""

    number: int
    state: str = "running"
    parameters: dict[str, Any] = field(default_factory=dict)
    values: list[float] = field(default_factory=list)
    intermediate: dict[int, float] = field(default_factory=dict)  # by step
    attributes: dict[str, str] = field(default_factory=dict)
    started_at: Optional[float] = None
    ended_at: Optional[float] = None

    def as_report(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "state": self.state,
            "parameters": dict(self.parameters),
            "values": list(self.values),
            "steps": list(self.intermediate),
            "intermediate": list(self.intermediate.values()),
            "attributes": dict(self.attributes),
            "started_at": self.started_at,
            "ended_at": self.ended_at,
        }


class StudyReporter:
    """Reports the latest state of each trial from a separate thread.

    Reports of a trial that wait for the yard are merged. If the yard does not respond, they are sent again later, and
    the study continues.

    Args:
        send: Sends the trials of a study, given by its id, to the yard.
    """

    def __init__(self, send: Callable[[int, list[dict[str, Any]]], None]) -> None:
        self._send = send
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._waiting: dict[tuple[int, int], dict[str, Any]] = {}  # (study, trial number) -> report
        self._sending = False
        self._unavailable = False
        self._warned = False
        self._thread: Optional[threading.Thread] = None

    def report(self, study_id: int, trial: TrialState, *, wait: bool = True) -> None:
        """Report a trial. A finished one is waited for: workers of multiprocessing exit without atexit hooks."""
        if os.getpid() != self._pid:  # a forked worker has neither the thread nor what its parent reports
            self._begin()
        with self._changed:
            self._waiting[study_id, trial.number] = trial.as_report()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="runyard-study", daemon=True)
                self._thread.start()
                atexit.register(self.flush)  # after an interactive run was opened: called before the hook that ends it
            self._changed.notify_all()
        if wait and trial.state != "running":
            self.flush()

    def flush(self, timeout_s: float = _MAX_WAIT_S) -> None:
        """Wait until everything is sent, unless the yard does not respond."""
        if os.getpid() != self._pid:
            return
        with self._changed:
            self._changed.wait_for(lambda: self._unavailable or not (self._waiting or self._sending), timeout_s)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._waiting))
                study_id = next(iter(self._waiting))[0]
                keys = [key for key in self._waiting if key[0] == study_id][:_BATCH]
                batch = {key: self._waiting.pop(key) for key in keys}
                self._sending = True
            try:
                self._send(study_id, list(batch.values()))
                unavailable = False
            except YardUnavailable as error:
                unavailable = True
                self._warn(f"the yard does not respond; trials are reported later: {error}")
            except (RunyardException, OSError, ValueError) as error:
                unavailable = False
                self._warn(f"trials of the study are not recorded: {error}")
            with self._changed:
                self._sending, self._unavailable = False, unavailable
                if unavailable:
                    self._waiting = {**batch, **self._waiting}  # a later report of the same trial replaces it
                self._changed.notify_all()
            if unavailable:
                time.sleep(_RETRY_S)

    def _warn(self, message: str) -> None:
        if not self._warned:
            self._warned = True
            log.warning("%s", message)
