"""Where a model comes from, copied from its run: it stays told when environments are pruned and datasets change."""

from __future__ import annotations

from typing import Any

from runyard.orchestrator.components import Rooms
from runyard.spec.json import sayable
from runyard.store.datasets import DatasetStore
from runyard.tracking.ingest import ingest
from runyard.tracking.metrics import read_last


def lineage_of(rooms: Rooms, run_id: str) -> dict[str, Any]:
    """The columns of a model that tell of its run."""
    run = rooms.runs.load(run_id)
    folder = rooms.folder(run_id)
    if not run.life.state.is_terminal:  # a script that registers its model has logged what it is worth just before
        ingest(rooms.database, run_id, folder.journal)
    lock = folder.lock_file
    uses = DatasetStore(rooms.database).uses_of([run_id])
    return {
        "run_id": run_id,
        "experiment": run.experiment,
        "snapshot_id": run.snapshot_id,
        "environment_key": run.environment_key,
        "environment_lock": lock.read_text(encoding="utf-8") if lock.is_file() else None,
        "metrics": sayable(read_last(rooms.database, run_id)),
        "data": [{key: value for key, value in vars(use).items() if key != "run_id"} for use in uses],
    }
