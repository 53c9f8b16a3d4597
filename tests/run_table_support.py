"""Runs in a database, and their table."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np

from runyard.lifecycle.state import End, EndReason, Life, RunState
from runyard.run_table.table import RunTable
from runyard.store.database import Database
from runyard.store.runs import RunRecord, RunStore
from runyard.tracking.series import append
from studio_support import columns_of


class Runs:
    def __init__(self, database: Database) -> None:
        self.database, self.store = database, RunStore(database)
        self.activities = {"r-queued": "waiting for 2 GPUs"}
        self.table = RunTable(database, lambda run_id, status, target: self.activities.get(run_id, ""))
        self._times = itertools.count(1.0)  # the value with the highest time is the last one

    def add(
        self,
        run_id: str,
        *arguments: str,
        experiment: str = "digits",
        state: RunState = RunState.COMPLETED,
        message: str = "",
        created_at: float = 1000.0,
        took: float = 60.0,
        name: str | None = None,
        tags: dict[str, str | None] | None = None,
        spec: dict[str, Any] | None = None,
        **metrics: float,
    ) -> None:
        reason = {RunState.COMPLETED: EndReason.SUCCEEDED, RunState.FAILED: EndReason.SCRIPT_FAILED}.get(state)
        ended = state.is_terminal
        record = RunRecord(
            run_id=run_id,
            experiment=experiment,
            life=Life(state, End(reason, message) if reason else None),
            created_at=created_at,
            name=name,
            spec={"script": "train.py", "arguments": list(arguments), **(spec or {})},
            target="local",
            submitted_by="ada",
            started_at=created_at,
            ended_at=created_at + took if ended else None,
        )
        assert self.store.insert(record, tags or {}, {}) is not None
        for key, value in metrics.items():
            self.log(run_id, key, value)

    def log(self, run_id: str, name: str, value: float) -> None:
        with self.database.write() as connection:
            append(connection, run_id, {name: columns_of(np.arange(1), np.array([value]), next(self._times))}, {})

    def find(self, query: str = "", sort: str = "created_at", **more: Any) -> list[str]:
        return [row["run_id"] for row in self.rows(query, sort, **more)]

    def rows(self, query: str = "", sort: str = "created_at", **more: Any) -> list[dict[str, Any]]:
        return [json.loads(row) for row in self.table.page(query, sort, **more).rows]
