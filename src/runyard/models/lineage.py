"""The origin of a model, copied from its run so that it outlives pruned environments and changed datasets."""

from __future__ import annotations

from typing import Any

from runyard.orchestrator.components import Components
from runyard.spec.json import replace_non_finite
from runyard.store.datasets import DatasetStore
from runyard.tracking.ingest import ingest
from runyard.tracking.logs import read_log
from runyard.tracking.metrics import read_last

_MAX_LOCK_BYTES = 1 << 24


def model_origin(components: Components, run_id: str) -> dict[str, Any]:
    """The columns of a model that describe its run."""
    run = components.runs.load(run_id)
    folder = components.folder(run_id)
    if not run.life.state.is_terminal:  # a script that registers its model logs its metrics just before
        ingest(components.database, run_id, folder.journal)
    lock, _ = read_log(folder.lock_file, 0, _MAX_LOCK_BYTES)
    uses = DatasetStore(components.database).uses_by_runs([run_id])
    return {
        "run_id": run_id,
        "experiment": run.experiment,
        "snapshot_id": run.snapshot_id,
        "environment_key": run.environment_key,
        "environment_lock": lock.decode("utf-8", "replace") or None,
        "metrics": replace_non_finite(read_last(components.database, run_id)),
        "data": [{key: value for key, value in vars(use).items() if key != "run_id"} for use in uses],
    }
