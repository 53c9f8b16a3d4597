"""The files of a new model version, from the URI that a client registers.

The yard stores the files of every version, so that a version remains when its run is deleted. A URI must therefore
refer to files of the yard: those of a run, of a logged model, or of another version.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from runyard.errors import ModelPathNotFoundException
from runyard.models.files import select_run_files
from runyard.models.registry import Models
from runyard.orchestrator.conductor import Conductor
from runyard.server.mlflow import models as logged_models
from runyard.server.mlflow.errors import DOES_NOT_EXIST, INVALID, MlflowError
from runyard.server.mlflow.registry import stages
from runyard.store.documents import MODEL, Documents
from runyard.store.models import ModelRecord
from runyard.tracking.artifacts import Artifact

_FOLDER = "model"  # of the files of a logged model


@dataclass(frozen=True)
class Source:
    files: Sequence[Artifact]  # held; the caller must release them
    run_id: str | None = None
    model_id: str | None = None
    made_of: str | None = None  # the version that it is a copy of


def resolve(conductor: Conductor, models: Models, uri: str, run_id: str | None, model_id: str | None) -> Source:
    """Find and hold the files of ``uri``; the run and the logged model must be those of the URI."""
    try:
        parts = urlsplit(uri)
    except ValueError as error:
        raise _invalid(uri, str(error)) from None
    path = parts.path.strip("/")
    if parts.netloc or not path:
        raise _invalid(uri, "expected a path")
    if parts.scheme == "runs":
        return _check(uri, _of_run(conductor, path, model_id), run_id, model_id)
    if parts.scheme == "models":
        return _check(uri, _of_model(conductor, models, uri, path), run_id, model_id)
    if parts.scheme == "mlflow-artifacts":
        return _check(uri, _of_artifacts(conductor, models, uri, path, model_id), run_id, model_id)
    raise _invalid(uri, "the files are not in the yard")


def _of_artifacts(conductor: Conductor, models: Models, uri: str, path: str, model_id: str | None) -> Source:
    owner, _, rest = path.partition("/")
    if owner == "models":
        name, _, rest = rest.partition("/")
        return _of_version(conductor, models, _version(models, name, rest.partition("/")[0], uri))
    if Documents(conductor.components.database).get(MODEL, owner) is not None:
        return _of_logged_model(conductor, owner, uri)
    return _of_run(conductor, path, model_id)


def _of_run(conductor: Conductor, path: str, model_id: str | None) -> Source:
    run_id, _, folder = path.partition("/")
    try:
        files = select_run_files(conductor.components, run_id, folder)
    except ModelPathNotFoundException as error:
        if unquote(folder) == folder:
            raise MlflowError(DOES_NOT_EXIST, error.message, hint=error.hint) from None
        return _of_run(conductor, f"{run_id}/{unquote(folder)}", model_id)
    return Source(files, run_id, model_id)


def _of_model(conductor: Conductor, models: Models, uri: str, path: str) -> Source:
    """Parse ``models:/<id of a logged model>``, ``models:/<name>/<version or stage>`` or ``models:/<name>@<alias>``."""
    name, slash, version = path.partition("/")
    if slash:
        return _of_version(conductor, models, _version(models, models.named(name).name, version, uri))
    name, at, alias = path.rpartition("@")
    if at:
        return _of_version(conductor, models, models.get(models.named(name).name, alias))
    return _of_logged_model(conductor, path, uri)


def _version(models: Models, name: str, version: str, uri: str) -> ModelRecord:
    if version.isdecimal() or version == "latest":
        return models.get(name, version)
    latest = models.search(name=name, stage=stages.to_yard(version), latest=True)
    if not latest:
        raise MlflowError(DOES_NOT_EXIST, f"there is no version for {uri!r}")
    return latest[0]


def _of_version(conductor: Conductor, models: Models, model: ModelRecord) -> Source:
    components = conductor.components
    files = models.files(model.name, model.version)
    components.artifacts.hold(files)
    run_id = model.run_id if model.run_id and components.runs.has(model.run_id) else None
    return Source(files, run_id, model.details.get("model_id"), model.id)


def _of_logged_model(conductor: Conductor, model_id: str, uri: str) -> Source:
    components = conductor.components
    document = Documents(components.database).get(MODEL, model_id)
    if document is None or document.content.get("deleted"):
        raise MlflowError(DOES_NOT_EXIST, f"there is no logged model {model_id!r} for {uri!r}")
    owner, folder = logged_models.location(document)
    if not folder:
        files = components.artifacts.files(owner)
        components.artifacts.hold(files)
        moved = [Artifact(f"{_FOLDER}/{file.path}", file.digest, file.size) for file in files]
    else:
        try:
            files = select_run_files(components, owner, folder)
        except ModelPathNotFoundException as error:
            raise MlflowError(DOES_NOT_EXIST, error.message, hint=error.hint) from None
        moved = [Artifact(_FOLDER + file.path[len(model_id) :], file.digest, file.size) for file in files]
    if not moved:
        raise MlflowError(DOES_NOT_EXIST, f"the logged model {model_id!r} has no files")
    return Source(moved, document.content.get("run_id"), model_id)


def _check(uri: str, source: Source, run_id: str | None, model_id: str | None) -> Source:
    """Use the ids of the request where the URI has none; refuse those of another run or model."""
    for name, requested, actual in (("run_id", run_id, source.run_id), ("model_id", model_id, source.model_id)):
        if requested and actual and requested != actual:
            raise _invalid(uri, f"its {name} is {actual!r}, not {requested!r}")
    return Source(source.files, source.run_id or run_id, source.model_id or model_id, source.made_of)


def _invalid(uri: str, reason: str) -> MlflowError:
    return MlflowError(
        INVALID,
        f"Invalid model version source: '{uri[:500]}': {reason}",
        hint="register runs:/RUN/PATH, a logged model, or models:/NAME/VERSION; for files of this machine use "
        "`runyard models register NAME PATH`",
    )
