"""Names and conversions of MLflow's JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

NAME, PARENT, USER, SOURCE = "mlflow.runName", "mlflow.parentRunId", "mlflow.user", "mlflow.source.name"
STAGE = "mlflow.lifecycleStage"  # the yard's own tag: MLflow clients can delete runs, which the yard only marks
ACTIVE, DELETED = "active", "deleted"
DEFAULT, DEFAULT_ID = "Default", "0"  # the experiment that MLflow clients use by default


def to_experiment_id(experiment: str) -> str:
    return DEFAULT_ID if experiment == DEFAULT else experiment


def to_experiment_name(experiment_id: str) -> str:
    return DEFAULT if experiment_id == DEFAULT_ID else experiment_id


def to_json_number(value: float) -> float | str:
    """Encode NaN and infinities as strings, as the JSON of protobuf does."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def to_pairs(labels: Mapping[str, str | None]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value or ""} for key, value in labels.items()]


def from_pairs(pairs: Any) -> dict[str, str]:
    return {str(pair["key"]): str(pair.get("value", "")) for pair in pairs or ()}
