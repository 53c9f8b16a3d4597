"""The OpenAPI document: FastAPI's own, completed with the shapes of responses that are built as plain dicts.

The studio's TypeScript types are generated from it (`scripts/ui_types.py`). Nothing here runs per request.
"""

from __future__ import annotations

from typing import Any, Literal, Union

from fastapi import FastAPI
from pydantic import TypeAdapter
from typing_extensions import NotRequired, TypedDict

from runyard.environments.prepared import EnvironmentInfo
from runyard.lifecycle.state import RunState
from runyard.wire.charts import SeriesView
from runyard.wire.data import DatastoreView, TransferView
from runyard.wire.datasets import DatasetPage, LineageView
from runyard.wire.models import Difference, ModelView
from runyard.wire.run_inspection import CodeChange
from runyard.wire.run_table import TableRow
from runyard.wire.runs import RunView
from runyard.wire.sweeps import SweepView, TrialView

Scalar = Union[str, float, bool, None]  # the texts NaN, Infinity and -Infinity stand for numbers that JSON lacks
Tags = dict[str, Union[str, None]]

Phase = TypedDict("Phase", {"phase": str, "from": float, "to": Union[float, None]})


class LoggedValue(TypedDict):
    step: int | None
    time: float
    rank: int | None
    value: Any


class ValuePage(TypedDict):
    name: str
    kind: str
    count: int
    next: int
    values: list[LoggedValue]


class LogMatch(TypedDict):
    offset: int
    line: int
    text: str


class RegisteredEnvironment(TypedDict):
    name: str
    version: str
    definition: dict[str, Any]


class ComputeNode(TypedDict):
    name: str
    run_id: str | None


class ComputeStatus(TypedDict, total=False):
    nodes: list[ComputeNode]
    waiting: list[str]
    runs: list[str]
    answers: bool  # of a remote cluster: whether it is reachable
    partition: str
    node_count: int
    time_limit: Union[str, float, None]
    cpus: int
    memory_gb: float
    gpus: list[str]


class Compute(TypedDict):
    name: str
    kind: str
    configuration: dict[str, Any]
    created_at: float | None
    status: ComputeStatus


class ServiceWorker(TypedDict):
    place: int
    pid: int | None
    state: str
    is_current: bool
    restarts: int
    started_at: float | None
    error: str


class ServiceVersion(TypedDict):
    version: int
    state: str
    error: str
    models: list[str]
    traffic: int
    entry_script: str
    snapshot_id: str | None
    environment_key: str | None
    created_at: float
    workers: list[ServiceWorker]


class ServiceBatching(TypedDict):
    largest: int
    wait_ms: float


class ServiceSettings(TypedDict):
    host: str
    port: int
    workers: int
    auth_enabled: bool
    limits: dict[str, float]
    batching: ServiceBatching | None


class RecentLoad(TypedDict):
    requests_per_second: float
    p50_ms: NotRequired[float]
    p90_ms: NotRequired[float]
    p95_ms: NotRequired[float]
    p99_ms: NotRequired[float]


class Service(TypedDict):
    name: str
    kind: str
    state: str
    error: str
    doing: str
    configuration: ServiceSettings
    description: str | None
    tags: Tags
    properties: Tags
    traffic: dict[str, int]
    scoring_uri: str
    swagger_uri: str
    created_by: str | None
    created_at: float
    changed_at: float
    change: int
    lately: RecentLoad
    versions: list[ServiceVersion]


class ServiceTotals(TypedDict):
    requests: int
    ok: int
    refused: int
    failed: int
    turned_away: int
    bytes_in: int
    bytes_out: int
    batches: int
    batched_rows: int
    p50_ms: float
    p90_ms: float
    p95_ms: float
    p99_ms: float


class ServicePoint(TypedDict):
    at: float
    requests_per_second: float
    failed_per_second: float
    p50_ms: float
    p90_ms: float
    p95_ms: float
    p99_ms: float


class ServiceStats(ServiceTotals):
    versions: dict[str, ServiceTotals]
    history: list[ServicePoint]


ServiceRequest = TypedDict(
    "ServiceRequest",
    {
        "at": str,
        "id": str,
        "method": str,
        "path": str,
        "status": int,
        "ms": float,
        "in": int,
        "out": int,
        "version": Union[int, str],
        "worker": Union[int, str],
    },
)


class ServiceKeys(TypedDict):
    primary: str
    secondary: str


class ServiceLog(TypedDict):
    text: str


class InvocationResult(TypedDict):
    status: int
    text: str
    json: Any
    ms: float
    request_id: str
    version: str


class DatasetUse(TypedDict):
    run_id: str
    name: str
    mode: str
    digest: str | None
    same: bool | None
    status: RunState | None
    experiment: str | None
    created_at: float | None


class DataUsed(TypedDict):
    name: str
    mode: str
    datastore: str | None
    path: str | None
    dataset_id: str | None
    dataset_name: str | None
    dataset_version: int | None
    digest: str | None


class LineageNode(TypedDict):
    """A deleted object has only its id, kind and label."""

    id: str
    kind: Literal["data", "dataset", "run", "model", "service"]
    label: str
    name: NotRequired[str | None]
    version: NotRequired[int | None]
    dataset_id: NotRequired[str]
    digest: NotRequired[str | None]
    files: NotRequired[int | None]
    bytes: NotRequired[int | None]
    run_id: NotRequired[str | None]
    number: NotRequired[int]
    experiment: NotRequired[str]
    status: NotRequired[RunState]
    stage: NotRequired[str]
    state: NotRequired[str]


class LineageEdge(TypedDict):
    source: str
    target: str
    kind: str
    name: str | None
    mode: str | None
    digest: str | None
    same: bool | None


class SweepPopulation(TypedDict):
    size: int


class SweepSampling(TypedDict):
    name: str
    space: dict[str, Any]
    seed: int
    population: NotRequired[SweepPopulation | None]


class ErrorText(TypedDict):
    code: str
    message: str
    hint: str


_RESPONSES: dict[tuple[str, str], Any] = {
    ("get", "/api/runs/{run_id}/timeline"): list[Phase],
    ("get", "/api/runs/{run_id}/values/{name}"): ValuePage,
    ("get", "/api/runs/{run_id}/logs/{name}/search"): list[LogMatch],
    ("get", "/api/environments"): list[EnvironmentInfo],
    ("post", "/api/environments/prune"): list[EnvironmentInfo],
    ("get", "/api/environments/registered"): list[RegisteredEnvironment],
    ("get", "/api/computes"): list[Compute],
    ("get", "/api/computes/{name}"): Compute,
    ("get", "/api/services"): list[Service],
    ("get", "/api/services/{name}"): Service,
    ("post", "/api/services/{name}/traffic"): Service,
    ("get", "/api/services/{name}/stats"): ServiceStats,
    ("get", "/api/services/{name}/requests"): list[ServiceRequest],
    ("get", "/api/services/{name}/logs"): ServiceLog,
    ("get", "/api/services/{name}/keys"): ServiceKeys,
    ("post", "/api/services/{name}/keys"): ServiceKeys,
    ("post", "/api/services/{name}/invoke"): InvocationResult,
}

_FIELDS: dict[tuple[type, str], Any] = {
    (RunView, "status"): RunState,
    (TableRow, "status"): RunState,
    (TableRow, "params"): dict[str, Scalar],
    (TableRow, "metrics"): dict[str, Scalar],
    (SeriesView, "last"): Scalar,
    (CodeChange, "change"): Literal["added", "removed", "changed"],
    (DatastoreView, "credentials"): Literal["kept", "environment", "none"],
    (TransferView, "kind"): Literal["upload", "download"],
    (TransferView, "state"): Literal["running", "done", "failed", "canceled"],
    (TransferView, "error"): Union[ErrorText, None],
    (DatasetPage, "runs"): list[DatasetUse],
    (LineageView, "nodes"): list[LineageNode],
    (LineageView, "edges"): list[LineageEdge],
    (ModelView, "metrics"): dict[str, Scalar],
    (ModelView, "data"): list[DataUsed],
    (Difference, "left"): Scalar,
    (Difference, "right"): Scalar,
    (TrialView, "status"): RunState,
    (TrialView, "parameters"): dict[str, Scalar],
    (SweepView, "status"): RunState,
    (SweepView, "goal"): Literal["maximize", "minimize"],
    (SweepView, "sampling"): SweepSampling,
    (SweepView, "policy"): Union[dict[str, Scalar], None],
}


def install(app: FastAPI) -> None:
    derive = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            _complete(derive())
        assert app.openapi_schema is not None
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def referenced_schemas(document: dict[str, Any], part: str) -> set[str]:
    """Names of the schemas that `part` of any operation contains, directly or through others."""
    operations = [operation for item in document["paths"].values() for operation in item.values()]
    pending = [operation.get(part) for operation in operations]
    names: set[str] = set()
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            name = str(value.get("$ref", "")).removeprefix("#/components/schemas/")
            if name and name not in names:
                names.add(name)
                pending.append(document["components"]["schemas"][name])
            pending += value.values()
        elif isinstance(value, list):
            pending += value
    return names


def _complete(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    for name in referenced_schemas(document, "responses") - referenced_schemas(document, "requestBody"):
        if "properties" in schemas[name]:  # a response has all fields of its dataclass, also those with a default
            schemas[name]["required"] = list(schemas[name]["properties"])
    for (owner, field), shape in _FIELDS.items():
        properties = schemas[owner.__name__]["properties"]
        properties[field] = {"title": properties[field]["title"], **_schema(shape, schemas)}
    for (method, path), shape in _RESPONSES.items():
        if path in document["paths"]:  # a server without web services lacks theirs
            content = document["paths"][path][method]["responses"]["200"]["content"]
            content["application/json"]["schema"] = _schema(shape, schemas)


def _schema(shape: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    """The schema of a type; the named types inside it are added to `schemas`."""
    schema = TypeAdapter(shape).json_schema(mode="serialization", ref_template="#/components/schemas/{model}")
    for name, definition in schema.pop("$defs", {}).items():
        schemas[name] = definition
    if "properties" in schema or ("enum" in schema and "title" in schema):  # a named type itself
        schemas[schema["title"]] = schema
        return {"$ref": f"#/components/schemas/{schema['title']}"}
    return schema
