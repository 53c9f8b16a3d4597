"""Files of runs, registered versions and logged models, as MLflow's page requests them."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from fastapi import Request, Response

from runyard.errors import RunyardException
from runyard.models.registry import Models
from runyard.orchestrator.conductor import Conductor
from runyard.server.mlflow import artifacts, models
from runyard.server.mlflow.errors import INVALID, MlflowError, error_response, require
from runyard.server.mlflow.registry import model_versions

Fields = dict[str, Any]
_MAX_UPLOAD_BYTES = 10 << 20  # as in MLflow's own server; clients send larger files through the proxy


def of_run(conductor: Conductor, fields: Fields) -> Response:
    return artifacts.download(conductor, f"{require(fields, 'run_id', 'run_uuid')}/{require(fields, 'path')}")


def of_version(conductor: Conductor, registry: Models, fields: Fields) -> Response:
    uri = model_versions.download_uri(registry, fields)["artifact_uri"]
    return artifacts.download(conductor, f"{_folder(uri)}/{require(fields, 'path')}")


def of_logged_model(conductor: Conductor, fields: Fields) -> Response:
    return artifacts.download(conductor, f"{_model_folder(conductor, fields)}/{require(fields, 'artifact_file_path')}")


def list_logged_model(conductor: Conductor, fields: Fields) -> Any:
    folder = str(fields.get("artifact_directory_path") or "").strip("/")
    root = _model_folder(conductor, fields)
    files = artifacts.list_folder(conductor, f"{root}/{folder}", f"{folder}/" if folder else "")
    return {"root_uri": f"mlflow-artifacts:/{root}", "files": files}


async def upload(conductor: Conductor, request: Request) -> Response:
    """Store a small file of a run, such as the settings of a chart."""
    try:
        run_id = require(dict(request.query_params), "run_uuid", "run_id")
        path = require(dict(request.query_params), "path")
        size = request.headers.get("content-length", "")
        if not size.isdecimal() or not 0 < int(size) <= _MAX_UPLOAD_BYTES:
            raise MlflowError(INVALID, f"expected 1 to {_MAX_UPLOAD_BYTES:,} bytes with a content length, got {size!r}")
    except RunyardException as error:
        return error_response(error)
    return await artifacts.upload(conductor, f"{run_id}/{path}", request)


def _model_folder(conductor: Conductor, fields: Fields) -> str:
    return _folder(models.get(conductor, fields)["model"]["info"]["artifact_uri"])


def _folder(uri: str) -> str:
    return urlsplit(uri).path.strip("/")
