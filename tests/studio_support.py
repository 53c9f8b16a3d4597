"""A home with many runs in it, made by the store's own functions: what a table, a chart or a page is tried on."""

from __future__ import annotations

import math
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import insert

from runyard.lifecycle.state import End, EndReason, Life, RunState
from runyard.spec.json import to_json
from runyard.spec.parameters import parse_parameters
from runyard.spec.run import RunSpec
from runyard.store import schema
from runyard.store.database import Database
from runyard.store.open_store import open_database
from runyard.store.runs import RunRecord, to_columns
from runyard.tracking.blocks import Columns
from runyard.tracking.series import append

EXPERIMENTS = ("digits", "translate", "speech", "vision-transformer")
TEAMS = ("vision", "language", "audio")
METRICS = ("loss", "accuracy", "val_loss", "val_accuracy", "lr")


def fill_home(home: Path, runs: int, *, points: int = 1, seed: int = 1) -> list[str]:
    """``runs`` finished runs, the oldest first; their ids. No yard may be running there. 10,000 take a few seconds."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    database = open_database(home / "yard.db")
    try:
        chance = random.Random(seed)
        ids: list[str] = []
        for begin in range(0, runs, 1000):  # one transaction each: a row at a time would take minutes
            ids += _some(database, chance, range(begin, min(begin + 1000, runs)), runs, points)
        return ids
    finally:
        database.close()


def fill_series(home: Path, run_id: str, name: str, points: int) -> None:
    """A long metric for a run that is there: a wave with a single peak of 1000 in it, at its middle."""
    database = open_database(home / "yard.db")
    try:
        with database.write() as connection:
            steps = np.arange(points, dtype=np.int64)
            values = np.sin(steps / 1000.0)
            values[points // 2] = 1000.0
            append(connection, run_id, {name: columns_of(steps, values, time.time() - points / 100.0)}, {})
    finally:
        database.close()


def columns_of(steps: Any, values: Any, began: float) -> Columns:
    count = len(values)
    return Columns(
        steps,
        began + np.arange(count) * 0.01,
        np.ascontiguousarray(values, np.float64).view(np.int64),
        np.zeros(count, np.int32),
        np.full(count, 1, np.uint8),
    )


def _some(database: Database, chance: random.Random, numbers: range, total: int, points: int) -> list[str]:
    now = time.time()
    runs, tags, params, changes, series = [], [], [], [], []
    records = []
    for number in numbers:
        record = _record(chance, number, now - (total - number) * 60.0)
        records.append(record)
        runs.append(to_columns(record))
        changes.append({"run_id": record.run_id})
        tags += [
            {"run_id": record.run_id, "key": "team", "value": TEAMS[number % 3]},
            {"run_id": record.run_id, "key": "fold", "value": str(number % 20)},
        ]
        assert record.spec is not None
        params += [
            {"run_id": record.run_id, "key": key, "value": value}
            for key, value in parse_parameters(record.spec["arguments"]).items()
        ]
        if points == 1:
            series += [
                {
                    "run_id": record.run_id,
                    "name": name,
                    "kind": "scalar",
                    "count": 0,
                    "last": round(chance.random(), 6),
                }
                for name in METRICS
            ]
    experiments = [{"name": name, "created_at": now} for name in EXPERIMENTS]
    with database.write() as connection:
        connection.execute(insert(schema.experiments).prefix_with("OR IGNORE"), experiments)
        connection.execute(insert(schema.runs), runs)
        connection.execute(insert(schema.tags), tags)
        connection.execute(insert(schema.params), params)
        connection.execute(insert(schema.changes), changes)
        if series:
            connection.execute(insert(schema.series), series)
        for record in records if points > 1 else ():
            steps = np.arange(points, dtype=np.int64)
            scalars = {
                name: columns_of(steps, np.exp(-steps / points) + place * 0.1, record.created_at)
                for place, name in enumerate(METRICS)
            }
            append(connection, record.run_id, scalars, {})
    return [record.run_id for record in records]


def _record(chance: random.Random, number: int, created_at: float) -> RunRecord:
    experiment = EXPERIMENTS[number % len(EXPERIMENTS)]
    lr = round(10 ** chance.uniform(-4, -1), 6)
    arguments = ("--lr", str(lr), "--layers", str(number % 12 + 1), "--optimizer", ("adam", "sgd")[number % 2])
    state, end = RunState.COMPLETED, End(EndReason.SUCCEEDED, exit_code=0)
    if number % 10 == 3:
        state = RunState.FAILED
        end = End(EndReason.SCRIPT_FAILED, "ValueError: the loss is not a number", exit_code=1)
    elif number % 10 == 7:
        state, end = RunState.CANCELED, End(EndReason.CANCELED, "canceled")
    took = 10.0 + math.fmod(number * 7.3, 3000.0)
    return RunRecord(
        run_id=f"{experiment}_{int(created_at)}_{number:08x}",
        experiment=experiment,
        life=Life(state, end),
        created_at=created_at,
        type="azureml.scriptrun",
        name=f"trial {number}" if number % 5 == 0 else None,
        spec=to_json(RunSpec("train.py", arguments)),
        target="local",
        timeline={"Preparing": created_at, "Running": created_at + 1, state.value: created_at + 1 + took},
        submitted_by="ada",
        started_at=created_at + 1,
        ended_at=created_at + 1 + took,
    )
