"""The datasets of experiments, for the filter of MLflow's page."""

from __future__ import annotations

from typing import Any

from runyard.orchestrator.conductor import Conductor
from runyard.server.mlflow.constants import to_experiment_id, to_experiment_name
from runyard.server.mlflow.errors import INVALID, MlflowError
from runyard.store.documents import INPUTS, Documents
from runyard.store.run_search import DATASET, Comparison, condition, ordering

_MAX_EXPERIMENTS, _MAX_SUMMARIES = 20, 1000  # as in MLflow's own server
_MAX_RUNS = 10_000


def search(conductor: Conductor, fields: dict[str, Any]) -> Any:
    """The different datasets that the newest runs of some experiments used."""
    experiment_ids = fields.get("experiment_ids") or []
    if not experiment_ids:
        raise MlflowError(INVALID, "SearchDatasets request must specify at least one experiment_id.")
    if len(experiment_ids) > _MAX_EXPERIMENTS:
        raise MlflowError(
            INVALID,
            f"SearchDatasets request cannot specify more than {_MAX_EXPERIMENTS} experiment_ids. "
            f"Received {len(experiment_ids)} experiment_ids.",
        )
    names = [to_experiment_name(experiment_id) for experiment_id in experiment_ids]
    has_dataset = condition(Comparison(DATASET, "name", "LIKE", "%"))
    records = conductor.components.runs.search(names, [has_dataset], ordering([]), 0, _MAX_RUNS)
    experiments = {record.run_id: record.experiment for record in records}
    summaries: dict[tuple[str, str, str, str], None] = {}  # ordered, without duplicates
    for document in reversed(Documents(conductor.components.database).find(INPUTS, experiments)):
        for item in document.content.get("datasets", ()):
            dataset = item["dataset"]
            experiment_id = to_experiment_id(experiments[document.owner])
            summaries[experiment_id, str(dataset["name"]), str(dataset["digest"]), str(item.get("context") or "")] = (
                None
            )
    keys = ("experiment_id", "name", "digest", "context")
    return {"dataset_summaries": [dict(zip(keys, summary)) for summary in list(summaries)[:_MAX_SUMMARIES]]}
