"""MLflow's GraphQL endpoint: the same data as that of the REST endpoints, with the fields that the query selects."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from runyard.errors import RunyardException
from runyard.models.registry import Models
from runyard.orchestrator.conductor import Conductor
from runyard.server.mlflow import artifacts, experiments, histories, runs, search
from runyard.server.mlflow.errors import INVALID, MlflowError, error_response, require
from runyard.server.mlflow.registry import search as registry_search
from runyard.server.mlflow.ui import datasets
from runyard.server.mlflow.ui.graphql_query import Selection, parse_query
from runyard.server.mlflow.validation import validate

Fields = dict[str, Any]
_Handler = Callable[[Conductor, Models, Fields], Any]

_WORD_START = re.compile(r"(?<=[a-z0-9])([A-Z])")
_FIRST_LETTERS = re.compile(r"(?:^|_)([a-z])")
# 64-bit integers, which GraphQL has no type for
_LONG = re.compile(r"(.*_)?(time|timestamp|step|size)")


def handle(conductor: Conductor, models: Models, fields: Fields) -> Any:
    """Answer a query. Errors of a field are its `apiError`, as MLflow's page expects them."""
    variables = fields.get("variables") or {}
    if not isinstance(variables, dict):
        raise MlflowError(INVALID, "'variables': expected an object")
    operation = str(fields["operationName"]) if fields.get("operationName") else None
    data = {}
    for selection in parse_query(require(fields, "query"), variables, operation):
        if selection.name == "__typename":
            data[selection.key] = "Query"
            continue
        handler = _FIELDS.get(selection.name)
        if handler is None:
            raise MlflowError(INVALID, f"unknown GraphQL field {selection.name!r}")
        data[selection.key] = _select(_call(handler, conductor, models, selection), selection)
    return {"data": data, "errors": None}


def _call(handler: _Handler, conductor: Conductor, models: Models, selection: Selection) -> Fields:
    arguments = selection.arguments.get("input")
    try:
        fields = validate(_to_snake_case(arguments) if isinstance(arguments, dict) else {})
        return {"api_error": None, **handler(conductor, models, fields)}
    except RunyardException as error:
        content = orjson.loads(bytes(error_response(error).body))
        return {"api_error": {"code": content["error_code"], "message": content["message"], "help_url": None}}


def _run(conductor: Conductor, models: Models, fields: Fields) -> Fields:
    return {"run": _with_relations(conductor, models, runs.get(conductor, fields)["run"])}


def _search_runs(conductor: Conductor, models: Models, fields: Fields) -> Fields:
    page = search.runs(conductor, fields)
    return {**page, "runs": [_with_relations(conductor, models, run) for run in page["runs"]]}


def _with_relations(conductor: Conductor, models: Models, run: Fields) -> Fields:
    """Add the objects that only GraphQL returns with a run; each is loaded if the query selects it."""
    experiment_id, run_id = run["info"]["experiment_id"], run["info"]["run_id"]
    return {
        **run,
        "experiment": lambda: experiments.get(conductor, {"experiment_id": experiment_id})["experiment"],
        "model_versions": lambda: registry_search.model_versions(models, {"filter": f"run_id = '{run_id}'"})[
            "model_versions"
        ],
    }


_FIELDS: Mapping[str, _Handler] = {
    "mlflowGetRun": _run,
    "mlflowSearchRuns": _search_runs,
    "mlflowGetExperiment": lambda conductor, models, fields: experiments.get(conductor, fields),
    "mlflowListArtifacts": lambda conductor, models, fields: artifacts.list_artifacts(conductor, fields),
    "mlflowGetMetricHistoryBulkInterval": lambda conductor, models, fields: histories.samples(conductor, fields),
    "mlflowSearchModelVersions": lambda conductor, models, fields: registry_search.model_versions(models, fields),
    "mlflowSearchDatasets": lambda conductor, models, fields: datasets.search(conductor, fields),
}


def _select(value: Any, selection: Selection) -> Any:
    if callable(value):
        value = value()
    if isinstance(value, list):
        return [_select(item, selection) for item in value]
    if not isinstance(value, dict):
        return value
    result = {}
    for field in selection.fields:
        name = _to_snake(field.name)
        if field.name == "__typename":
            result[field.key] = "Mlflow" + _FIRST_LETTERS.sub(
                lambda letter: letter[1].upper(), _to_snake(selection.name)
            )
        else:
            result[field.key] = _scalar(name, _select(value.get(name), field))
    return result


def _scalar(name: str, value: Any) -> Any:
    if name == "value" and value in ("NaN", "Infinity", "-Infinity"):
        return None  # a number in GraphQL is finite
    is_long = isinstance(value, int) and not isinstance(value, bool) and _LONG.fullmatch(name) is not None
    return str(value) if is_long else value


def _to_snake(name: str) -> str:
    return _WORD_START.sub(lambda letter: f"_{letter[1].lower()}", name)


def _to_snake_case(arguments: dict[str, Any]) -> Fields:
    return {_to_snake(name): value for name, value in arguments.items()}
