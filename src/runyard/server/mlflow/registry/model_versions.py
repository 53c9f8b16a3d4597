"""MLflow's endpoints for model versions."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

from runyard.models.registry import Models
from runyard.orchestrator.conductor import Conductor
from runyard.server.mlflow.errors import DOES_NOT_EXIST, INVALID, MlflowError, require
from runyard.server.mlflow.registry import names, serializers, sources, stages
from runyard.store.model_names import ModelName, ModelNotFound
from runyard.store.models import ModelRecord
from runyard.tracking.artifacts import Artifact, Artifacts
from runyard.wire.models import ChangeModel, RegisterModel

Fields = dict[str, Any]
_MAX_MLMODEL_BYTES = 1 << 20
_FRAMEWORKS = {
    "sklearn": "ScikitLearn",
    "pytorch": "PyTorch",
    "keras": "TfKeras",
    "tensorflow": "TensorFlow",
    "onnx": "Onnx",
}


def create(conductor: Conductor, models: Models, fields: Fields) -> Any:
    name, tags = models.named(names.model_title(fields)), names.tags(fields)
    description, run_link = names.text(fields, "description"), names.text(fields, "run_link")
    uri = require(fields, "source")
    source = sources.resolve(conductor, models, uri, fields.get("run_id"), fields.get("model_id"))
    artifacts = conductor.components.artifacts
    try:
        framework, framework_version = _framework(artifacts, source.files)
    except BaseException:
        artifacts.release(source.files)
        raise
    details = {"source": uri, "model_id": source.model_id, "run_link": run_link}
    request = RegisterModel(
        registration_id=os.urandom(16).hex(),
        name=name.name,
        run_id=source.run_id,
        description=description or None,
        framework=framework,
        framework_version=framework_version,
        tags=dict(tags),
        details={key: value for key, value in details.items() if value},
        made_of=source.made_of,
    )
    model = models.register_files(request, source.files, name_must_exist=True)
    return {"model_version": serializers.model_version(name, model, [])}


def get(models: Models, fields: Fields) -> Any:
    name, model = _find(models, fields)
    return _response(models, name, model)


def update(models: Models, fields: Fields) -> Any:
    name, model = _find(models, fields)
    change = ChangeModel(description=names.text(fields, "description"))
    return _response(models, name, models.change(name.name, model.version, change))


def delete(models: Models, fields: Fields) -> Any:
    name, model = _find(models, fields)
    models.delete(name.name, model.version, by=None, with_aliases=True, keep_name=True)
    return {}


def download_uri(models: Models, fields: Fields) -> Any:
    return {"artifact_uri": serializers.download_uri(models, _find(models, fields)[1])}


def transition_stage(models: Models, fields: Fields) -> Any:
    name, model = _find(models, fields)
    stage = stages.canonical(require(fields, "stage"))
    archive = fields.get("archive_existing_versions") in (True, "true")
    if archive and stage not in stages.ACTIVE:
        raise MlflowError(
            INVALID,
            f"cannot archive existing versions, because '{stage}' is not an active stage. "
            f"Valid stages are {', '.join(stages.ACTIVE)}",
        )
    changed = models.set_stage(name.name, model.version, stages.to_yard(stage), by=None, archive_others=archive)
    return _response(models, name, changed)


def set_tag(models: Models, fields: Fields) -> Any:
    name, model = _find(models, fields)
    key, value = names.tag(fields)
    models.change(name.name, model.version, ChangeModel(tags={key: value}))
    return {}


def delete_tag(models: Models, fields: Fields) -> Any:
    name, model = _find(models, fields)
    models.change(name.name, model.version, ChangeModel(remove_tags=[names.tag_key(fields)]))
    return {}


def _find(models: Models, fields: Fields) -> tuple[ModelName, ModelRecord]:
    name, version = models.named(names.model_title(fields)), names.version_number(fields)
    try:
        return name, models.get(name.name, version)
    except ModelNotFound as error:
        message = f"Model Version (name={name.title}, version={version}) not found"
        raise MlflowError(DOES_NOT_EXIST, message, hint=error.hint) from None


def _response(models: Models, name: ModelName, model: ModelRecord) -> Fields:
    aliases = models.aliases(name.name).get(name.name, [])
    return {"model_version": serializers.model_version(name, model, aliases)}


def _framework(artifacts: Artifacts, files: Sequence[Artifact]) -> tuple[str | None, str | None]:
    """The framework and its version, from the list of flavors in the file MLmodel.

    The file is not parsed as YAML: a client wrote it, and only a few of its lines are needed.
    """
    file = next((file for file in files if file.path.split("/")[-1] == "MLmodel" and file.path.count("/") < 2), None)
    if file is None or file.size > _MAX_MLMODEL_BYTES:
        return None, None
    text = artifacts.content(file.digest).read_text("utf-8", "replace")
    flavors = re.search(r"^flavors:\n((?:[ ].*\n)*)", text, re.MULTILINE)
    for flavor, framework in _FRAMEWORKS.items():
        if flavors and re.search(rf"^  {flavor}:", flavors[1], re.MULTILINE):
            version = re.search(rf"^    {flavor}_version: ['\"]?([\w.+-]{{1,60}})", flavors[1], re.MULTILINE)
            return framework, version[1] if version else None
    return "Custom", None
