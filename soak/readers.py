"""Clients that read all the time: lists, records, metrics, logs, and followers of live runs."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from typing import Any

from runyard import Workspace
from runyard.client.connection import Connection
from runyard.errors import RunyardException

_PAUSE_S = 0.1
_FOLLOW_S = 5.0


class Readers:
    def __init__(self, workspace: Workspace, seed: int) -> None:
        self._home = workspace.home
        self._random = random.Random(seed)
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self.counts: Counter[str] = Counter()
        self.problems: Counter[str] = Counter()
        self._threads = [
            threading.Thread(target=self._read, name="reader", daemon=True),
            threading.Thread(target=self._read, name="reader", daemon=True),
            threading.Thread(target=self._follow, name="follower", daemon=True),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join(60)

    def _read(self) -> None:
        connection = Connection(self._home)
        while not self._stopped.is_set():
            page = self._get(connection, "list", "/api/runs", limit=50)
            runs = page["runs"] if page else []
            for run in self._random.sample(runs, min(3, len(runs))):
                for kind, path in (("record", ""), ("summary", "/summary"), ("files", "/files")):
                    self._get(connection, kind, f"/api/runs/{run['run_id']}{path}")
            self._get(connection, "table", "/api/runs/table", query="status = Completed", limit=20)
            self._get(connection, "services", "/api/services")
            time.sleep(_PAUSE_S)

    def _follow(self) -> None:
        connection = Connection(self._home)
        while not self._stopped.is_set():
            deadline = time.monotonic() + _FOLLOW_S
            try:
                for _ in connection.events("/api/live"):
                    with self._lock:
                        self.counts["live events"] += 1
                    if time.monotonic() > deadline or self._stopped.is_set():
                        break
            except (RunyardException, OSError):  # the yard was killed: the stream ends, and the next one begins
                time.sleep(_PAUSE_S)

    def _get(self, connection: Connection, kind: str, path: str, **query: object) -> Any:
        """One request. The client starts the yard again if it was killed, so every failure is a finding."""
        try:
            answer = connection.get(path, **query)
        except (RunyardException, OSError) as error:
            with self._lock:
                self.problems[f"{kind}: {type(error).__name__}: {error}"] += 1
            return None
        with self._lock:
            self.counts[kind] += 1
        return answer
