"""The proxy for artifacts that MLflow's client uploads to and downloads from: the first part of a path says whose."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from runyard.errors import RunNotFound, RunyardException
from runyard.orchestrator.conductor import Conductor
from runyard.orchestrator.run_files import list_files, locate
from runyard.server.file_responses import file_response
from runyard.server.mlflow.errors import DOES_NOT_EXIST, INVALID, Fault, required, told
from runyard.server.responses import json_response
from runyard.spec.folder import HomeFolder
from runyard.store.documents import MODEL, Documents
from runyard.tracking.artifacts import INCOMING

_PLACE = "/2.0/mlflow-artifacts/artifacts"


def add(router: APIRouter, conductor: Conductor) -> None:
    rooms = conductor.rooms

    async def keep(path: str, request: Request) -> Response:
        try:
            owner, name = await run_in_threadpool(_owned, conductor, path)
            with tempfile.NamedTemporaryFile(prefix=INCOMING, dir=HomeFolder(rooms.home).artifacts) as arrived:
                async for chunk in request.stream():
                    await run_in_threadpool(arrived.write, chunk)
                await run_in_threadpool(arrived.flush)
                await run_in_threadpool(rooms.artifacts.keep_file, owner, name, Path(arrived.name))
        except ClientDisconnect:
            return Response(status_code=499)  # nobody reads it
        except RunyardException as error:
            return told(error)
        conductor.bell.ring(owner)
        return json_response({})

    def fetch(path: str) -> Response:
        try:
            owner, name = _owned(conductor, path)
            found = _located(conductor, owner, name)
            if found is None:
                raise Fault(DOES_NOT_EXIST, f"{owner} has no file {name!r}")
            return file_response(found, Path(name).name)
        except RunyardException as error:
            return told(error)

    def remove(path: str) -> Response:
        try:
            rooms.artifacts.remove(*_owned(conductor, path))
        except RunyardException as error:
            return told(error)
        return json_response({})

    def listing(path: str = "") -> Response:
        try:
            owner, _, folder = path.strip("/").partition("/")
            return json_response({"files": _below(_names(conductor, owner), folder, "")})
        except RunyardException as error:
            return told(error)

    router.add_api_route(_PLACE, listing, methods=["GET"])
    router.add_api_route(f"{_PLACE}/{{path:any}}", fetch, methods=["GET"])
    router.add_api_route(f"{_PLACE}/{{path:any}}", keep, methods=["PUT"])
    router.add_api_route(f"{_PLACE}/{{path:any}}", remove, methods=["DELETE"])


def listed(conductor: Conductor, fields: dict[str, Any]) -> Any:
    """`artifacts/list`: as the proxy lists them, but with names from the top of the run."""
    run_id = required(fields, "run_id", "run_uuid")
    folder = str(fields.get("path") or "").strip("/")
    files = _below(_names(conductor, run_id), folder, f"{folder}/" if folder else "")
    return {"root_uri": f"mlflow-artifacts:/{run_id}", "files": files}


def _owned(conductor: Conductor, path: str) -> tuple[str, str]:
    owner, _, name = path.strip("/").partition("/")
    if not name:
        raise Fault(INVALID, f"{path!r} names no file of a run")
    _check_owner(conductor, owner)
    return owner, name


def _check_owner(conductor: Conductor, owner: str) -> None:
    try:
        conductor.rooms.runs.load(owner)
    except RunNotFound:
        if Documents(conductor.rooms.database).get(MODEL, owner) is None:
            raise


def _located(conductor: Conductor, owner: str, name: str) -> Path | None:
    try:
        return locate(conductor.rooms, conductor.rooms.runs.load(owner), name)
    except RunNotFound:  # a model without a run
        return conductor.rooms.artifacts.path_of(owner, name)


def _names(conductor: Conductor, owner: str) -> list[tuple[str, int]]:
    try:
        return list_files(conductor.rooms, conductor.rooms.runs.load(owner))
    except RunNotFound:
        _check_owner(conductor, owner)
        return [(kept.path, kept.size) for kept in conductor.rooms.artifacts.files(owner)]


def _below(files: list[tuple[str, int]], folder: str, prefix: str) -> list[dict[str, Any]]:
    """The files and folders directly in a folder."""
    start = f"{folder}/" if folder else ""
    found: dict[str, dict[str, Any]] = {}
    for name, size in files:
        if name.startswith(start):
            first, deeper, _ = name[len(start) :].partition("/")
            entry = {"path": prefix + first, "is_dir": bool(deeper)}
            found[first] = entry if deeper else {**entry, "file_size": size}
    return list(found.values())
