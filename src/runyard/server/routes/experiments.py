"""Experiments: names, tags, archiving. MLflow clients use the same tags."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional

from fastapi import APIRouter, Response

from runyard import clock
from runyard.errors import UserErrorException
from runyard.orchestrator.conductor import Conductor
from runyard.server.mlflow.constants import ACTIVE, DELETED
from runyard.server.responses import json_response
from runyard.spec.names import EXPERIMENT_NAME
from runyard.store.documents import EXPERIMENT, Document, Documents
from runyard.store.experiments import ExperimentRecord, ExperimentStore


@dataclass(frozen=True)
class ChangeExperiment:
    set: dict[str, Optional[str]] = field(default_factory=dict)
    remove: list[str] = field(default_factory=list)
    archived: Optional[bool] = None


def routes(conductor: Conductor) -> APIRouter:
    router = APIRouter(tags=["experiments"])
    store, documents = ExperimentStore(conductor.components.database), Documents(conductor.components.database)

    @router.get("/experiments")
    def experiments() -> Response:
        """List experiments, oldest first, including archived ones."""
        details = {document.id: document for document in documents.find(EXPERIMENT)}
        return json_response([_view(experiment, details.get(experiment.name)) for experiment in store.all()])

    @router.patch("/experiments/{name}")
    def change(name: str, request: ChangeExperiment) -> Response:
        """Change the tags of an experiment, or archive it; creates the experiment if it does not exist."""
        if not EXPERIMENT_NAME.fullmatch(name):
            raise UserErrorException(f"invalid experiment name {name!r}")
        experiment = store.add(name)

        def apply(content: dict[str, Any]) -> dict[str, Any]:
            tags = {key: value for key, value in content.get("tags", {}).items() if key not in request.remove}
            stage = {} if request.archived is None else {"stage": DELETED if request.archived else ACTIVE}
            return {**content, **stage, "tags": {**tags, **request.set}, "changed_at": clock.now()}

        return json_response(_view(experiment, documents.change(EXPERIMENT, name, name, apply)))

    return router


def _view(experiment: ExperimentRecord, document: Document | None) -> dict[str, Any]:
    content = document.content if document else {}
    archived = content.get("stage") == DELETED
    return {
        "name": experiment.name,
        "created_at": experiment.created_at,
        "tags": content.get("tags", {}),
        "archived_at": content.get("changed_at") if archived else None,
    }
