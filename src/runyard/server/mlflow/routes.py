"""The routes of MLflow's API: a table of endpoints and their handlers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import orjson
from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from runyard.errors import RunyardException
from runyard.models.registry import Models
from runyard.orchestrator.conductor import Conductor
from runyard.server.auth import CALLING_RUN
from runyard.server.mlflow import artifacts, experiments, histories, model_search, models, runs, search
from runyard.server.mlflow.errors import INVALID, MlflowError, error_response
from runyard.server.mlflow.registry import endpoints as registry
from runyard.server.mlflow.ui import endpoints as ui
from runyard.server.mlflow.ui import files as ui_files
from runyard.server.mlflow.validation import validate
from runyard.server.responses import json_response

Handler = Callable[[Conductor, dict[str, Any]], Any]

ENDPOINTS: dict[str, Handler] = {
    "POST /experiments/create": experiments.create,
    "GET /experiments/get": experiments.get,
    "GET /experiments/get-by-name": experiments.get_by_name,
    "GET /experiments/search": experiments.search,
    "POST /experiments/search": experiments.search,
    "POST /experiments/update": experiments.update,
    "POST /experiments/delete": experiments.delete,
    "POST /experiments/restore": experiments.restore,
    "POST /experiments/set-experiment-tag": experiments.set_tag,
    "POST /experiments/delete-experiment-tag": experiments.delete_tag,
    "POST /runs/create": runs.create,
    "GET /runs/get": runs.get,
    "POST /runs/update": runs.update,
    "POST /runs/delete": runs.delete,
    "POST /runs/restore": runs.restore,
    "POST /runs/search": search.runs,
    "POST /runs/log-metric": runs.log_metric,
    "POST /runs/log-parameter": runs.log_parameter,
    "POST /runs/log-batch": runs.log_batch,
    "POST /runs/log-model": runs.log_model,
    "POST /runs/log-inputs": runs.log_inputs,
    "POST /runs/outputs": runs.log_outputs,
    "POST /runs/set-tag": runs.set_tag,
    "POST /runs/delete-tag": runs.delete_tag,
    "GET /metrics/get-history": histories.history,
    "GET /metrics/get-history-bulk": histories.bulk,
    "GET /metrics/get-history-bulk-interval": histories.samples,
    "GET /artifacts/list": artifacts.list_artifacts,
    "POST /logged-models": models.create,
    "POST /logged-models/search": model_search.search,
    "GET /logged-models/{model_id}": models.get,
    "PATCH /logged-models/{model_id}": models.finalize,
    "DELETE /logged-models/{model_id}": models.delete,
    "PATCH /logged-models/{model_id}/tags": models.set_tags,
    "DELETE /logged-models/{model_id}/tags/{tag_key}": models.delete_tag,
    "POST /logged-models/{model_id}/params": models.log_params,
}
_REPEATABLE = ("run_ids", "order_by", "experiment_ids", "stages")  # query parameters that may occur several times
_CAPABILITIES = {
    "store_type": None,
    "workspaces_enabled": False,
    "trace_archival_enabled": False,
    "multipart_uploads_enabled": False,
    "multipart_downloads_enabled": False,
}
_NO_TELEMETRY = {"disable_ui_telemetry": True, "disable_ui_events": [], "ui_rollout_percentage": 0}


def routes(conductor: Conductor, registered_models: Models) -> APIRouter:
    router = APIRouter(tags=["mlflow"], include_in_schema=False)  # documented by MLflow
    registry_endpoints, ui_endpoints = registry.endpoints(registered_models), ui.endpoints(registered_models)
    for endpoint, handler in {**ENDPOINTS, **registry_endpoints, **ui_endpoints}.items():
        method, _, path = endpoint.partition(" ")
        router.add_api_route(f"/2.0/mlflow{path}", _endpoint(conductor, handler), methods=[method])
    artifacts.add(router, conductor)
    router.add_api_route("/2.0/mlflow/upload-artifact", partial(ui_files.upload, conductor), methods=["POST"])
    router.add_api_route("/3.0/mlflow/ui-telemetry", lambda: json_response(_NO_TELEMETRY), methods=["GET", "POST"])
    router.add_api_route("/3.0/mlflow/server-info", lambda: json_response(_CAPABILITIES), methods=["GET"])
    for rest in ("/2.0/mlflow/{path:any}", "/3.0/mlflow/{path:any}"):
        router.add_api_route(rest, _missing, methods=["GET", "POST", "PATCH", "PUT", "DELETE"])
    return router


def _endpoint(conductor: Conductor, handler: Handler) -> Callable[[Request], Any]:
    async def endpoint(request: Request) -> Response:
        try:
            fields = {**_query(request), **_body(await request.body()), **request.path_params}
            fields = validate(fields, value_is_number=handler is runs.log_metric)
            fields[CALLING_RUN] = request.scope.get(CALLING_RUN)
            result = await run_in_threadpool(handler, conductor, fields)
            return result if isinstance(result, Response) else json_response(result)
        except RunyardException as error:
            return error_response(error)
        except (UnicodeError, OverflowError, RecursionError) as error:  # of the database or of JSON
            return error_response(MlflowError(INVALID, f"the request contains an invalid value: {error}"))

    return endpoint


def _query(request: Request) -> dict[str, Any]:
    query = request.query_params
    fields: dict[str, Any] = {name: query.getlist(name) if name in _REPEATABLE else query[name] for name in query}
    if len(query.getlist("run_id")) > 1:  # requests for histories of several runs repeat it
        fields["run_ids"] = query.getlist("run_id")
    return fields


def _body(data: bytes) -> dict[str, Any]:
    if not data:
        return {}
    try:
        content = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise MlflowError(INVALID, f"the request body is not valid JSON: {error}") from None
    if not isinstance(content, dict):
        raise MlflowError(INVALID, "the request body must be a JSON object")
    return content


async def _missing(request: Request) -> Response:
    endpoint = str(request.scope["path"]).partition("/mlflow/")[2]
    return error_response(
        MlflowError(
            "ENDPOINT_NOT_FOUND",
            f"the yard does not support MLflow's {endpoint!r}",
            hint="it supports runs, metrics, artifacts, logged models and the model registry, but no traces",
        )
    )
