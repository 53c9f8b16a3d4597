"""What came of what: datasets, the runs that used them, the models that these made, the services that serve those."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, select

from runyard.errors import UserErrorException
from runyard.spec.data import RUN_FILES, place_of_run_file
from runyard.store import schema
from runyard.store.database import Database
from runyard.store.datasets import BEYOND_ALL, DatasetStore

_SOME = 500  # below SQLite's limit of variables
_MOST = 2000  # nodes: more than anybody looks at

_datasets, _uses, _models = schema.datasets, schema.data_uses, schema.models


@dataclass(frozen=True)
class Edge:
    source: str
    target: str
    kind: str  # "led", "used", "wrote", "saved", "registered", "named", "made of", "served"
    name: str | None = None  # of the input, or the scenario for which a model names a dataset
    mode: str | None = None
    digest: str | None = None  # of the data when the run was submitted
    same: bool | None = None  # whether that is what the dataset pointed to when it was saved


@dataclass
class Lineage:
    start: list[str] = field(default_factory=list)
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    edges: dict[tuple[str, str, str, str | None], Edge] = field(default_factory=dict)
    truncated: bool = False


def of_run(database: Database, run_id: str) -> Lineage:
    """A sweep, or another run with children, goes with them."""
    with database.read() as connection:
        runs = schema.runs.c
        query = select(runs.run_id, runs.parent_id).where(runs.root_id == run_id, runs.run_id != run_id)
        children = connection.execute(query.order_by(runs.number).limit(_MOST)).all()
        lineage = _traced(connection, [f"run:{one}" for one in (run_id, *(child.run_id for child in children))])
    for child in children:
        edge = Edge(f"run:{child.parent_id}", f"run:{child.run_id}", "led")
        lineage.edges[edge.source, edge.target, edge.kind, None] = edge
    lineage.start = [f"run:{run_id}"]
    return lineage


def of_dataset(database: Database, wanted: str) -> Lineage:
    """By name (all of its versions), ``name:version`` or id."""
    store = DatasetStore(database)
    with database.read() as connection:
        if connection.execute(select(_datasets.c.dataset_id).where(_datasets.c.dataset_id == wanted)).first():
            return _traced(connection, [f"dataset:{wanted}"])
    name, _, version = wanted.rpartition(":")
    if name and version.isdigit():
        found = [store.by_name(name, int(version))]
    else:
        found = store.versions(wanted)
    with database.read() as connection:
        return _traced(connection, [f"dataset:{one.dataset_id}" for one in found])


def of_model(database: Database, wanted: str) -> Lineage:
    """By name (all of its versions) or ``name:version``."""
    name, _, version = wanted.rpartition(":")
    query = select(_models.c.name, _models.c.version).order_by(_models.c.version.desc())
    if name and version.isdigit():
        query = query.where(_models.c.name == name, _models.c.version == min(int(version), BEYOND_ALL))
    else:
        query = query.where(_models.c.name == wanted)
    with database.read() as connection:
        found = [f"model:{row.name}:{row.version}" for row in connection.execute(query)]
        if not found:
            names = sorted({row.name for row in connection.execute(select(_models.c.name))})
            hint = f"registered: {', '.join(names[:20])}" if names else "run.register_model(…) registers one"
            raise UserErrorException(f"no model {wanted!r} is registered here", hint=hint)
        return _traced(connection, found)


def _traced(connection: Connection, start: list[str]) -> Lineage:
    """Up from the start to all that it came of, and down to all that came of it; not down again from above."""
    lineage = Lineage(start)
    for look, forward in ((_above, False), (_below, True)):
        level, seen = list(start), set(start)
        while level and not lineage.truncated:
            following: list[str] = []
            for edge in look(connection, level):
                lineage.edges.setdefault((edge.source, edge.target, edge.kind, edge.name), edge)
                other = edge.target if forward else edge.source
                if other not in seen:
                    seen.add(other)
                    following.append(other)
            lineage.truncated = len(seen) > _MOST
            level = following
    ends = (end for edge in lineage.edges.values() for end in (edge.source, edge.target))
    lineage.nodes = _described(connection, dict.fromkeys([*start, *ends]))
    return lineage


def _above(connection: Connection, nodes: list[str]) -> Iterator[Edge]:
    yield from (edge for edge in _uses_where(connection, _uses.c.run_id, _ids(nodes, "run")) if edge.kind == "used")
    yield from (edge for edge in _uses_at(connection, _ids(nodes, "data")) if edge.kind == "wrote")
    yield from filter(None, map(_left_by_a_run, _ids(nodes, "data")))
    for row in _rows(connection, select(_datasets), _datasets.c.dataset_id, _ids(nodes, "dataset")):
        if row.run_id:
            yield Edge(f"run:{row.run_id}", f"dataset:{row.dataset_id}", "saved")
    for row in _rows(connection, select(_models), _models.c.name, _model_names(nodes)):
        if f"model:{row.name}:{row.version}" in nodes:
            yield from _sources_of_model(row)
    yield from _served(connection, services=_ids(nodes, "service"))


def _below(connection: Connection, nodes: list[str]) -> Iterator[Edge]:
    ids = _ids(nodes, "dataset")
    yield from _uses_where(connection, _uses.c.dataset_id, ids)
    yield from _uses_of_same_content(connection, ids)
    yield from (edge for edge in _uses_at(connection, _ids(nodes, "data")) if edge.kind == "used")
    runs = _ids(nodes, "run")
    yield from (edge for edge in _uses_where(connection, _uses.c.run_id, runs) if edge.kind == "wrote")
    for run_id in runs:
        yield from _read_from(connection, run_id)
    for row in _rows(connection, select(_datasets), _datasets.c.run_id, runs):
        yield Edge(f"run:{row.run_id}", f"dataset:{row.dataset_id}", "saved")
    for row in _rows(connection, select(_models), _models.c.run_id, runs):
        yield Edge(f"run:{row.run_id}", f"model:{row.name}:{row.version}", "registered")
    if ids or _model_names(nodes):  # what a model says of where it comes from is in its details
        wanted = set(nodes)
        for row in connection.execute(select(_models)):
            yield from (edge for edge in _sources_of_model(row) if edge.source in wanted)
    yield from _served(connection, models=set(nodes))


def _left_by_a_run(place: str) -> Edge | None:
    """What is in the datastore of runs' files was written by the run whose id is in its path."""
    top = f"{RUN_FILES}/{place_of_run_file('', '')}".rstrip("/")
    if not place.startswith(top):
        return None
    return Edge(f"run:{place[len(top) :].partition('/')[0]}", f"data:{place}", "wrote")


def _read_from(connection: Connection, run_id: str) -> Iterator[Edge]:
    """What other runs were given of this one's files."""
    top = place_of_run_file(run_id, "")
    query = select(_uses.c.path).where(_uses.c.datastore == RUN_FILES, _uses.c.path.startswith(top, autoescape=True))
    for path in dict.fromkeys(connection.execute(query.where(_uses.c.dataset_id.is_(None))).scalars()):
        yield Edge(f"run:{run_id}", f"data:{RUN_FILES}/{path}", "wrote")


def _uses_where(connection: Connection, column: Any, values: list[str]) -> Iterator[Edge]:
    known = {}
    rows = list(_rows(connection, select(_uses), column, values))
    for row in _rows(connection, select(_datasets), _datasets.c.dataset_id, [r.dataset_id for r in rows]):
        known[row.dataset_id] = row.digest
    for row in rows:
        source = f"dataset:{row.dataset_id}" if row.dataset_id else f"data:{row.datastore}/{row.path}"
        if row.mode == "upload":
            yield Edge(f"run:{row.run_id}", source, "wrote", row.name, row.mode)
            continue
        saved = known.get(row.dataset_id)
        same = saved == row.digest if saved and row.digest else None
        yield Edge(source, f"run:{row.run_id}", "used", row.name, row.mode, row.digest, same)


def _uses_at(connection: Connection, places: list[str]) -> Iterator[Edge]:
    """Of a place in a datastore, without a dataset: who read it, and who wrote to it."""
    for place in places:
        datastore, _, path = place.partition("/")
        query = select(_uses.c.run_id).where(_uses.c.datastore == datastore, _uses.c.path == path)
        runs = [row.run_id for row in connection.execute(query.where(_uses.c.dataset_id.is_(None)))]
        here = f"data:{place}"
        yield from (e for e in _uses_where(connection, _uses.c.run_id, runs) if here in (e.source, e.target))


def _uses_of_same_content(connection: Connection, ids: list[str]) -> Iterator[Edge]:
    """Runs that used what this dataset points to under another id, as before it had a name."""
    by_digest = {
        row.digest: row.dataset_id
        for row in _rows(connection, select(_datasets), _datasets.c.dataset_id, ids)
        if row.digest
    }
    for row in _rows(connection, select(_uses), _uses.c.digest, list(by_digest)):
        if row.dataset_id not in ids:
            source = f"dataset:{by_digest[row.digest]}"
            yield Edge(source, f"run:{row.run_id}", "used", row.name, row.mode, row.digest, True)


def _sources_of_model(row: Any) -> Iterator[Edge]:
    here = f"model:{row.name}:{row.version}"
    if row.run_id:
        yield Edge(f"run:{row.run_id}", here, "registered")
    for named in row.details.get("datasets", ()):
        if named.get("id"):
            yield Edge(f"dataset:{named['id']}", here, "named", named.get("scenario"))
    if row.details.get("made_of"):
        yield Edge(f"model:{row.details['made_of']}", here, "made of")


def _served(connection: Connection, services: Iterable[str] = (), models: Iterable[str] = ()) -> Iterator[Edge]:
    table, wanted, by_model = schema.service_versions, set(services), set(models)
    if not wanted and not any(node.startswith("model:") for node in by_model):
        return
    for row in connection.execute(select(table).order_by(table.c.name, table.c.version)):
        for name, version in row.models:
            model = f"model:{name}:{version}"
            if row.name in wanted or model in by_model:
                yield Edge(model, f"service:{row.name}", "served")


def _described(connection: Connection, nodes: Iterable[str]) -> dict[str, dict[str, Any]]:
    wanted = list(nodes)
    found: dict[str, dict[str, Any]] = {}
    for row in _rows(connection, select(schema.runs), schema.runs.c.run_id, _ids(wanted, "run")):
        names = ["run_id", "number", "experiment", "name", "type", "parent_id", "created_at", "ended_at"]
        found[f"run:{row.run_id}"] = {**_some(row, names), "status": row.state, "label": row.run_id}
    for row in _rows(connection, select(_datasets), _datasets.c.dataset_id, _ids(wanted, "dataset")):
        names = ["dataset_id", "name", "version", "digest", "files", "bytes", "created_at"]
        label = f"{row.name}:{row.version}" if row.name else _sources(row.definition)
        found[f"dataset:{row.dataset_id}"] = {**_some(row, names), "format": row.kind, "label": label}
    for row in _rows(connection, select(_models), _models.c.name, _model_names(wanted)):
        names = ["name", "version", "stage", "framework", "digest", "size", "run_id", "created_at"]
        label = f"{row.name}:{row.version}"
        found[f"model:{label}"] = {**_some(row, names), "label": label}
    for row in _rows(connection, select(schema.services), schema.services.c.name, _ids(wanted, "service")):
        found[f"service:{row.name}"] = {**_some(row, ("name", "state", "created_at")), "label": row.name}
    # what is gone is told by its name alone
    return {
        node: {"id": node, "kind": node.partition(":")[0], "label": node.partition(":")[2], **found.get(node, {})}
        for node in wanted
    }


def _sources(definition: dict[str, Any]) -> str:
    """What a dataset without a name is called by."""
    named = [one["url"] or f"{one['datastore']}/{one['path']}" for one in definition["sources"]]
    more = f" and {len(named) - 1} more" if len(named) > 1 else ""
    part = " (a part)" if definition["steps"] else ""
    return f"{named[0]}{more}{part}"


def _rows(connection: Connection, query: Any, column: Any, values: Iterable[str | None]) -> Iterator[Any]:
    wanted = [value for value in dict.fromkeys(values) if value is not None]
    for begin in range(0, len(wanted), _SOME):
        yield from connection.execute(query.where(column.in_(wanted[begin : begin + _SOME]))).all()


def _ids(nodes: Iterable[str], kind: str) -> list[str]:
    return [rest for found, _, rest in (node.partition(":") for node in nodes) if found == kind]


def _model_names(nodes: Iterable[str]) -> list[str]:
    return [one.rpartition(":")[0] for one in _ids(nodes, "model")]


def _some(row: Any, names: Iterable[str]) -> dict[str, Any]:
    return {name: row._mapping[name] for name in names}
