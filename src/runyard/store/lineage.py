"""Lineage: the graph of datasets, runs that used them, models that the runs produced, and services that serve them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, select

from runyard.errors import UserErrorException
from runyard.spec.data import RUN_FILES_STORE, run_file_path
from runyard.store import schema
from runyard.store.database import MAX_INTEGER, Database, batches
from runyard.store.datasets import DatasetStore

_MAX_NODES = 2000

_datasets, _uses, _models = schema.datasets, schema.data_uses, schema.models


@dataclass(frozen=True)
class Edge:
    source: str
    target: str
    kind: str  # "led", "used", "wrote", "saved", "registered", "named", "made of", "served"
    name: str | None = None  # of the input, or the scenario for which a model declares a dataset
    mode: str | None = None
    digest: str | None = None  # of the data when the run was submitted
    same: bool | None = None  # True if this is the content of the dataset when it was saved


@dataclass
class Lineage:
    start: list[str] = field(default_factory=list)
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    edges: dict[tuple[str, str, str, str | None], Edge] = field(default_factory=dict)
    truncated: bool = False


def trace_run(database: Database, run_id: str) -> Lineage:
    """Trace a run together with its descendants."""
    with database.read() as connection:
        runs = schema.runs.c
        query = select(runs.run_id, runs.parent_id).where(runs.root_id == run_id, runs.run_id != run_id)
        children = connection.execute(query.order_by(runs.number).limit(_MAX_NODES)).all()
        lineage = _trace(connection, [f"run:{run_id}", *(f"run:{child.run_id}" for child in children)])
    for child in children:
        edge = Edge(f"run:{child.parent_id}", f"run:{child.run_id}", "led")
        lineage.edges[edge.source, edge.target, edge.kind, None] = edge
    lineage.start = [f"run:{run_id}"]
    return lineage


def trace_dataset(database: Database, reference: str) -> Lineage:
    """Trace a dataset by name (all of its versions), ``name:version`` or id."""
    store = DatasetStore(database)
    with database.read() as connection:
        if connection.execute(select(_datasets.c.dataset_id).where(_datasets.c.dataset_id == reference)).first():
            return _trace(connection, [f"dataset:{reference}"])
    name, _, version = reference.rpartition(":")
    if name and version.isdigit():
        datasets = [store.by_name(name, int(version))]
    else:
        datasets = store.versions(reference)
    with database.read() as connection:
        return _trace(connection, [f"dataset:{dataset.dataset_id}" for dataset in datasets])


def trace_model(database: Database, reference: str) -> Lineage:
    """Trace a model by name (all of its versions) or ``name:version``."""
    name, _, version = reference.rpartition(":")
    query = select(_models.c.name, _models.c.version).order_by(_models.c.version.desc())
    if name and version.isdigit():
        query = query.where(_models.c.name == name, _models.c.version == min(int(version), MAX_INTEGER))
    else:
        query = query.where(_models.c.name == reference)
    with database.read() as connection:
        nodes = [f"model:{row.name}:{row.version}" for row in connection.execute(query)]
        if not nodes:
            names = sorted({row.name for row in connection.execute(select(_models.c.name))})
            hint = f"registered: {', '.join(names[:20])}" if names else "register one with run.register_model(…)"
            raise UserErrorException(f"no model {reference!r} is registered", hint=hint)
        return _trace(connection, nodes)


def _trace(connection: Connection, start: list[str]) -> Lineage:
    """Collect all ancestors and all descendants of the start nodes, but no other descendants of the ancestors."""
    lineage = Lineage(start)
    for find_edges, forward in ((_edges_to, False), (_edges_from, True)):
        level, visited = list(start), set(start)
        while level and not lineage.truncated:
            next_level: list[str] = []
            for edge in find_edges(connection, level):
                lineage.edges.setdefault((edge.source, edge.target, edge.kind, edge.name), edge)
                neighbor = edge.target if forward else edge.source
                if neighbor not in visited:
                    visited.add(neighbor)
                    next_level.append(neighbor)
            lineage.truncated = len(visited) > _MAX_NODES
            level = next_level
    ends = (end for edge in lineage.edges.values() for end in (edge.source, edge.target))
    lineage.nodes = _describe_nodes(connection, dict.fromkeys([*start, *ends]))
    return lineage


def _edges_to(connection: Connection, nodes: list[str]) -> Iterator[Edge]:
    yield from (edge for edge in _use_edges(connection, _uses.c.run_id, _ids(nodes, "run")) if edge.kind == "used")
    yield from (edge for edge in _path_uses(connection, _ids(nodes, "data")) if edge.kind == "wrote")
    yield from filter(None, map(_run_file_edge, _ids(nodes, "data")))
    for row in _rows(connection, select(_datasets), _datasets.c.dataset_id, _ids(nodes, "dataset")):
        if row.run_id:
            yield Edge(f"run:{row.run_id}", f"dataset:{row.dataset_id}", "saved")
    for row in _rows(connection, select(_models), _models.c.name, _model_names(nodes)):
        if f"model:{row.name}:{row.version}" in nodes:
            yield from _model_edges(row)
    yield from _service_edges(connection, services=_ids(nodes, "service"))


def _edges_from(connection: Connection, nodes: list[str]) -> Iterator[Edge]:
    ids = _ids(nodes, "dataset")
    yield from _use_edges(connection, _uses.c.dataset_id, ids)
    yield from _uses_of_same_content(connection, ids)
    yield from (edge for edge in _path_uses(connection, _ids(nodes, "data")) if edge.kind == "used")
    runs = _ids(nodes, "run")
    yield from (edge for edge in _use_edges(connection, _uses.c.run_id, runs) if edge.kind == "wrote")
    for run_id in runs:
        yield from _run_file_uses(connection, run_id)
    for row in _rows(connection, select(_datasets), _datasets.c.run_id, runs):
        yield Edge(f"run:{row.run_id}", f"dataset:{row.dataset_id}", "saved")
    for row in _rows(connection, select(_models), _models.c.run_id, runs):
        yield Edge(f"run:{row.run_id}", f"model:{row.name}:{row.version}", "registered")
    if ids or _model_names(nodes):  # the sources of a model are in its details, which SQL cannot search
        sources = set(nodes)
        for row in connection.execute(select(_models)):
            yield from (edge for edge in _model_edges(row) if edge.source in sources)
    yield from _service_edges(connection, models=set(nodes))


def _run_file_edge(path: str) -> Edge | None:
    """A path in the datastore of run files contains the id of the run that wrote the file."""
    prefix = f"{RUN_FILES_STORE}/{run_file_path('', '')}".rstrip("/")
    if not path.startswith(prefix):
        return None
    return Edge(f"run:{path[len(prefix) :].partition('/')[0]}", f"data:{path}", "wrote")


def _run_file_uses(connection: Connection, run_id: str) -> Iterator[Edge]:
    """Find the files of this run that other runs used."""
    prefix = run_file_path(run_id, "")
    query = select(_uses.c.path).where(
        _uses.c.datastore == RUN_FILES_STORE, _uses.c.path.startswith(prefix, autoescape=True)
    )
    for path in dict.fromkeys(connection.execute(query.where(_uses.c.dataset_id.is_(None))).scalars()):
        yield Edge(f"run:{run_id}", f"data:{RUN_FILES_STORE}/{path}", "wrote")


def _use_edges(connection: Connection, column: Any, values: list[str]) -> Iterator[Edge]:
    rows = list(_rows(connection, select(_uses), column, values))
    datasets = _rows(connection, select(_datasets), _datasets.c.dataset_id, [row.dataset_id for row in rows])
    saved_digests = {dataset.dataset_id: dataset.digest for dataset in datasets}
    for row in rows:
        source = f"dataset:{row.dataset_id}" if row.dataset_id else f"data:{row.datastore}/{row.path}"
        if row.mode == "upload":
            yield Edge(f"run:{row.run_id}", source, "wrote", row.name, row.mode)
            continue
        saved = saved_digests.get(row.dataset_id)
        same = saved == row.digest if saved and row.digest else None
        yield Edge(source, f"run:{row.run_id}", "used", row.name, row.mode, row.digest, same)


def _path_uses(connection: Connection, locations: list[str]) -> Iterator[Edge]:
    """Find the runs that read or wrote a path of a datastore directly, without a dataset."""
    for location in locations:
        datastore, _, path = location.partition("/")
        query = select(_uses.c.run_id).where(_uses.c.datastore == datastore, _uses.c.path == path)
        runs = [row.run_id for row in connection.execute(query.where(_uses.c.dataset_id.is_(None)))]
        node = f"data:{location}"
        yield from (e for e in _use_edges(connection, _uses.c.run_id, runs) if node in (e.source, e.target))


def _uses_of_same_content(connection: Connection, ids: list[str]) -> Iterator[Edge]:
    """Find runs that used the same content under another id, for example before the dataset had a name."""
    by_digest = {
        row.digest: row.dataset_id
        for row in _rows(connection, select(_datasets), _datasets.c.dataset_id, ids)
        if row.digest
    }
    for row in _rows(connection, select(_uses), _uses.c.digest, list(by_digest)):
        if row.dataset_id not in ids:
            source = f"dataset:{by_digest[row.digest]}"
            yield Edge(source, f"run:{row.run_id}", "used", row.name, row.mode, row.digest, True)


def _model_edges(row: Any) -> Iterator[Edge]:
    node = f"model:{row.name}:{row.version}"
    if row.run_id:
        yield Edge(f"run:{row.run_id}", node, "registered")
    for dataset in row.details.get("datasets", ()):
        if dataset.get("id"):
            yield Edge(f"dataset:{dataset['id']}", node, "named", dataset.get("scenario"))
    if row.details.get("made_of"):
        yield Edge(f"model:{row.details['made_of']}", node, "made of")


def _service_edges(connection: Connection, services: Iterable[str] = (), models: Iterable[str] = ()) -> Iterator[Edge]:
    table, names, nodes = schema.service_versions, set(services), set(models)
    if not names and not any(node.startswith("model:") for node in nodes):
        return
    for row in connection.execute(select(table).order_by(table.c.name, table.c.version)):
        for name, version in row.models:
            model = f"model:{name}:{version}"
            if row.name in names or model in nodes:
                yield Edge(model, f"service:{row.name}", "served")


def _describe_nodes(connection: Connection, nodes: Collection[str]) -> dict[str, dict[str, Any]]:
    facts: dict[str, dict[str, Any]] = {}
    for row in _rows(connection, select(schema.runs), schema.runs.c.run_id, _ids(nodes, "run")):
        names = ["run_id", "number", "experiment", "name", "type", "parent_id", "created_at", "ended_at"]
        facts[f"run:{row.run_id}"] = {**_pick(row, names), "status": row.state, "label": row.run_id}
    for row in _rows(connection, select(_datasets), _datasets.c.dataset_id, _ids(nodes, "dataset")):
        names = ["dataset_id", "name", "version", "digest", "files", "bytes", "created_at"]
        label = f"{row.name}:{row.version}" if row.name else _sources(row.definition)
        facts[f"dataset:{row.dataset_id}"] = {**_pick(row, names), "format": row.kind, "label": label}
    for row in _rows(connection, select(_models), _models.c.name, _model_names(nodes)):
        names = ["name", "version", "stage", "framework", "digest", "size", "run_id", "created_at"]
        label = f"{row.name}:{row.version}"
        facts[f"model:{label}"] = {**_pick(row, names), "label": label}
    for row in _rows(connection, select(schema.services), schema.services.c.name, _ids(nodes, "service")):
        facts[f"service:{row.name}"] = {**_pick(row, ("name", "state", "created_at")), "label": row.name}
    # deleted objects have only their name
    return {
        node: {"id": node, "kind": node.partition(":")[0], "label": node.partition(":")[2], **facts.get(node, {})}
        for node in nodes
    }


def _sources(definition: dict[str, Any]) -> str:
    """The label of a dataset without a name."""
    sources = [source["url"] or f"{source['datastore']}/{source['path']}" for source in definition["sources"]]
    more = f" and {len(sources) - 1} more" if len(sources) > 1 else ""
    part = " (a part)" if definition["steps"] else ""
    return f"{sources[0]}{more}{part}"


def _rows(connection: Connection, query: Any, column: Any, values: Iterable[str | None]) -> Iterator[Any]:
    for batch in batches(value for value in values if value is not None):
        yield from connection.execute(query.where(column.in_(batch))).all()


def _ids(nodes: Iterable[str], kind: str) -> list[str]:
    return [node.partition(":")[2] for node in nodes if node.startswith(f"{kind}:")]


def _model_names(nodes: Iterable[str]) -> list[str]:
    return [model.rpartition(":")[0] for model in _ids(nodes, "model")]


def _pick(row: Any, names: Iterable[str]) -> dict[str, Any]:
    return {name: row._mapping[name] for name in names}
