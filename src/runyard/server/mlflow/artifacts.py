"""MLflow's artifact proxy: upload, download and listing.

The first part of a path is the id of the owner, a run or a logged model. `models/NAME/VERSION/` has the files of a
registered version, which cannot be changed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from runyard.errors import RunNotFound, RunyardException
from runyard.models.registry import file_owner
from runyard.orchestrator.conductor import Conductor
from runyard.orchestrator.run_files import find_file, list_files
from runyard.server.file_responses import file_response
from runyard.server.mlflow import limits
from runyard.server.mlflow.errors import DOES_NOT_EXIST, INVALID, MlflowError, error_response, require
from runyard.server.responses import json_response
from runyard.server.uploads import CLIENT_CLOSED_REQUEST, store_upload
from runyard.store.documents import MODEL, Documents
from runyard.store.run_search import ARTIFACT_URI
from runyard.tracking.artifacts import FileSource

_PATH = "/2.0/mlflow-artifacts/artifacts"
_REGISTERED = "models"


def add(router: APIRouter, conductor: Conductor) -> None:
    components = conductor.components

    async def put(path: str, request: Request) -> Response:
        return await upload(conductor, path, request)

    def get(path: str) -> Response:
        try:
            return download(conductor, path)
        except RunyardException as error:
            return error_response(error)

    def remove(path: str) -> Response:
        try:
            components.artifacts.remove(*_split_changeable_path(conductor, path))
        except RunyardException as error:
            return error_response(error)
        return json_response({})

    def listing(path: str = "") -> Response:
        try:
            return json_response({"files": list_folder(conductor, path)})
        except RunyardException as error:
            return error_response(error)

    router.add_api_route(_PATH, listing, methods=["GET"])
    router.add_api_route(f"{_PATH}/{{path:any}}", get, methods=["GET"])
    router.add_api_route(f"{_PATH}/{{path:any}}", put, methods=["PUT"])
    router.add_api_route(f"{_PATH}/{{path:any}}", remove, methods=["DELETE"])


async def upload(conductor: Conductor, path: str, request: Request) -> Response:
    """Store the body of a request as the file at ``path``."""
    components = conductor.components
    try:
        owner, name = await run_in_threadpool(_split_changeable_path, conductor, path)
        stored = await store_upload(request, components.home, components.artifacts, owner, name)
    except RunyardException as error:
        return error_response(error)
    if stored is None:
        return Response(status_code=CLIENT_CLOSED_REQUEST)
    conductor.notifier.notify(owner)
    return json_response({})


def download(conductor: Conductor, path: str) -> Response:
    owner, name = _split_path(conductor, path)
    file = _locate(conductor, owner, name)
    if file is None:
        raise MlflowError(DOES_NOT_EXIST, f"there is no file {path!r}")
    return file_response(file, Path(name).name)


def list_folder(conductor: Conductor, path: str, prefix: str = "") -> list[dict[str, Any]]:
    """The files and folders directly in the folder at ``path``, with ``prefix`` before their names."""
    owner, folder = _split(path)
    return _folder_entries(_list_files(conductor, owner), folder.rstrip("/"), prefix)


def list_artifacts(conductor: Conductor, fields: dict[str, Any]) -> Any:
    """List a folder for `artifacts/list`; unlike in the proxy, paths are relative to the run, not to the folder."""
    run_id = require(fields, "run_id", "run_uuid")
    limits.check_path(str(fields.get("path") or ""))
    folder = str(fields.get("path") or "").strip("/")
    location = conductor.components.runs.labels([run_id])[run_id][1].get(ARTIFACT_URI)
    if location:
        raise MlflowError(INVALID, f"the artifacts of run {run_id} are at {location}, which the yard does not read")
    files = _folder_entries(_list_files(conductor, run_id), folder, f"{folder}/" if folder else "")
    return {"root_uri": f"mlflow-artifacts:/{run_id}", "files": files}


def _split_path(conductor: Conductor, path: str) -> tuple[str, str]:
    owner, name = _split(path)
    if not name:
        raise MlflowError(INVALID, f"expected RUN_ID/FILE, got {path!r}")
    _check_owner(conductor, owner)
    return owner, name


def _split_changeable_path(conductor: Conductor, path: str) -> tuple[str, str]:
    if path.strip("/").startswith(f"{_REGISTERED}/"):
        raise MlflowError(INVALID, "the files of a registered version cannot be changed", hint="register a new version")
    return _split_path(conductor, path)


def _split(path: str) -> tuple[str, str]:
    """Split a path into the owner of files and a name."""
    owner, _, name = path.strip("/").partition("/")
    if ":" in owner:  # the owner of a version's files, or of uploads
        raise MlflowError(INVALID, f"expected RUN_ID/FILE, got {path!r}")
    if owner != _REGISTERED:
        return owner, name
    model, _, rest = name.partition("/")
    version, _, name = rest.partition("/")
    if not version.isascii() or not version.isdecimal() or len(version) > 15:
        raise MlflowError(INVALID, f"expected {_REGISTERED}/NAME/VERSION/FILE, got {path!r}")
    return file_owner(model, int(version)), name


def _check_owner(conductor: Conductor, owner: str) -> None:
    try:
        conductor.components.runs.load(owner)
    except RunNotFound:
        is_registered = ":" in owner and bool(conductor.components.artifacts.files(owner))
        if not is_registered and Documents(conductor.components.database).get(MODEL, owner) is None:
            raise


def _locate(conductor: Conductor, owner: str, name: str) -> FileSource | None:
    try:
        return find_file(conductor.components, conductor.components.runs.load(owner), name)
    except RunNotFound:  # a registered version, or a logged model without a run
        artifacts = conductor.components.artifacts
        return artifacts.source_of(owner, name) if any(file.path == name for file in artifacts.files(owner)) else None


def _list_files(conductor: Conductor, owner: str) -> list[tuple[str, int]]:
    try:
        return list_files(conductor.components, conductor.components.runs.load(owner))
    except RunNotFound:
        _check_owner(conductor, owner)
        return [(file.path, file.size) for file in conductor.components.artifacts.files(owner)]


def _folder_entries(files: list[tuple[str, int]], folder: str, prefix: str) -> list[dict[str, Any]]:
    """List the files and folders directly in a folder."""
    start = f"{folder}/" if folder else ""
    entries: dict[str, dict[str, Any]] = {}
    for name, size in files:
        if name.startswith(start):
            first, slash, _ = name[len(start) :].partition("/")
            entry = {"path": prefix + first, "is_dir": bool(slash)}
            entries[first] = entry if slash else {**entry, "file_size": size}
    return list(entries.values())
