"""The endpoints of MLflow's page that its clients do not use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runyard.models.registry import Models
from runyard.orchestrator.conductor import Conductor
from runyard.server.mlflow.ui import datasets, files, graphql

Fields = dict[str, Any]


def endpoints(registry: Models) -> dict[str, Callable[[Conductor, Fields], Any]]:
    return {
        "POST /experiments/search-datasets": datasets.search,
        "POST /graphql": lambda conductor, fields: graphql.handle(conductor, registry, fields),
        "GET /get-artifact": files.of_run,
        "GET /model-versions/get-artifact": lambda conductor, fields: files.of_version(conductor, registry, fields),
        "GET /logged-models/{model_id}/artifacts/files": files.of_logged_model,
        "GET /logged-models/{model_id}/artifacts/directories": files.list_logged_model,
    }
