"""Search for runs."""

from __future__ import annotations

from typing import Any

from runyard.orchestrator.conductor import Conductor
from runyard.server.mlflow import experiments, filters, serializers
from runyard.server.mlflow.constants import DELETED, STAGE, to_experiment_name
from runyard.server.mlflow.errors import integer_field, invalid_value
from runyard.server.mlflow.runs import ingest_journals
from runyard.store.run_search import TAG, Comparison, condition, ordering

Fields = dict[str, Any]
_DEFAULT_RUNS, _MAX_RUNS = 1000, 50_000


def runs(conductor: Conductor, fields: Fields) -> Any:
    # unknown ids are not an error: as in MLflow's own server, such an experiment has no runs
    names = [to_experiment_name(experiment_id) for experiment_id in fields.get("experiment_ids") or ()]
    comparisons = filters.parse(fields.get("filter"), filters.RUNS)
    orders = filters.parse_orders(fields.get("order_by") or (), filters.RUNS)
    offset = experiments.page_offset(fields)
    limit = integer_field(fields, "max_results", _DEFAULT_RUNS)
    if not 0 < limit <= _MAX_RUNS:
        raise invalid_value("max_results", limit, f"must be between 1 and {_MAX_RUNS:,}")
    conditions = [condition(comparison) for comparison in comparisons]
    stages = experiments.lifecycle_stages(fields.get("run_view_type"))
    if len(stages) == 1:
        deleted = condition(Comparison(TAG, STAGE, "=", DELETED))
        conditions.append(deleted if DELETED in stages else ~deleted)
    ingest_journals(conductor, list(conductor.live))
    records = conductor.components.runs.search(names, conditions, ordering(orders), offset, limit + 1)
    page: dict[str, Any] = {"runs": serializers.runs(conductor, records[:limit])}
    if len(records) > limit:
        page["next_page_token"] = str(offset + limit)
    return page
