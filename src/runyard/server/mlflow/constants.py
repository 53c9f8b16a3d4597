"""Small things in the shapes of MLflow's JSON, and the words that both sides know them by."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

NAME, PARENT, USER, SOURCE = "mlflow.runName", "mlflow.parentRunId", "mlflow.user", "mlflow.source.name"
STAGE = "mlflow.lifecycleStage"  # a tag of the yard's own: MLflow's client can delete runs, the yard keeps them
ACTIVE, DELETED = "active", "deleted"
DEFAULT, DEFAULT_ID = "Default", "0"  # where MLflow's client logs to when nobody said where


def id_of(experiment: str) -> str:
    return DEFAULT_ID if experiment == DEFAULT else experiment


def number(value: float) -> float | str:
    """JSON has no words for these; protobuf's has."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def pairs(labels: Mapping[str, str | None]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value or ""} for key, value in labels.items()]


def of_pairs(given: Any) -> dict[str, str]:
    return {str(pair["key"]): str(pair.get("value", "")) for pair in given or ()}
