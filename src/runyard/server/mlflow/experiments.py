"""Experiments by MLflow's names and ids: a name may be any text there, and lives on as the title of one of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from runyard import clock
from runyard.orchestrator.conductor import Conductor
from runyard.server.mlflow import filters
from runyard.server.mlflow.constants import ACTIVE, DEFAULT, DEFAULT_ID, DELETED, id_of, milliseconds, of_pairs, pairs
from runyard.server.mlflow.errors import ALREADY_EXISTS, DOES_NOT_EXIST, INVALID, Fault, required, whole
from runyard.spec.names import to_experiment_name
from runyard.store.documents import EXPERIMENT, Document, Documents
from runyard.store.run_search import ATTRIBUTE, TAG, Order

_MOST_AT_ONCE = 50_000
Fields = dict[str, Any]


@dataclass(frozen=True)
class Experiment:
    name: str  # in the yard
    title: str  # what MLflow's client calls it
    created_at: float
    content: dict[str, Any]

    @property
    def stage(self) -> str:
        return str(self.content.get("stage", ACTIVE))

    def shape(self) -> dict[str, Any]:
        return {
            "experiment_id": id_of(self.name),
            "name": self.title,
            "artifact_location": f"mlflow-artifacts:/experiments/{self.name}",
            "lifecycle_stage": self.stage,
            "creation_time": milliseconds(self.created_at),
            "last_update_time": milliseconds(self.content.get("changed_at", self.created_at)),
            "tags": pairs(self.content.get("tags", {})),
        }


def by_id(conductor: Conductor, experiment_id: str) -> Experiment:
    wanted = DEFAULT if experiment_id == DEFAULT_ID else experiment_id
    found = {one.name: one for one in _all(conductor)}.get(wanted)
    if found is None:
        raise Fault(DOES_NOT_EXIST, f"there is no experiment with the id {experiment_id!r}")
    return found


def create(conductor: Conductor, fields: Fields) -> Any:
    title = required(fields, "name")
    known = _all(conductor)
    same = next((one for one in known if one.title == title), None)
    if same is not None:
        gone = " (it was deleted; restore it, or choose another name)" if same.stage == DELETED else ""
        raise Fault(ALREADY_EXISTS, f"there is an experiment {title!r} already{gone}")
    name = _free_name(title, {one.name for one in known})
    conductor.rooms.runs.add_experiment(name)
    _change(conductor, name, title=title, tags=of_pairs(fields.get("tags")))
    return {"experiment_id": id_of(name)}


def get(conductor: Conductor, fields: Fields) -> Any:
    return {"experiment": by_id(conductor, required(fields, "experiment_id")).shape()}


def get_by_name(conductor: Conductor, fields: Fields) -> Any:
    title = required(fields, "experiment_name")
    for one in _all(conductor):
        if one.title == title:
            return {"experiment": one.shape()}
    raise Fault(DOES_NOT_EXIST, f"there is no experiment {title!r}")


def search(conductor: Conductor, fields: Fields) -> Any:
    asked = filters.parse(fields.get("filter"), filters.EXPERIMENTS)
    stages = stages_of(fields.get("view_type"))
    found = []
    for one in _all(conductor):
        if one.stage in stages and filters.matches(asked, _values(one)):
            found.append(one.shape())
    found.sort(key=lambda shape: (-shape["creation_time"], shape["experiment_id"]))
    orders = [filters.parse_order(str(text), filters.EXPERIMENTS) for text in fields.get("order_by") or ()]
    for order in reversed(orders):
        sort(found, order)
    return page("experiments", found, fields, 1000)


def update(conductor: Conductor, fields: Fields) -> Any:
    one = by_id(conductor, required(fields, "experiment_id"))
    title = required(fields, "new_name")
    if any(other.title == title and other.name != one.name for other in _all(conductor)):
        raise Fault(ALREADY_EXISTS, f"there is an experiment {title!r} already")
    _change(conductor, one.name, title=title)
    return {}


def delete(conductor: Conductor, fields: Fields) -> Any:
    _change(conductor, by_id(conductor, required(fields, "experiment_id")).name, stage=DELETED)
    return {}


def restore(conductor: Conductor, fields: Fields) -> Any:
    _change(conductor, by_id(conductor, required(fields, "experiment_id")).name, stage=ACTIVE)
    return {}


def set_tag(conductor: Conductor, fields: Fields) -> Any:
    one = by_id(conductor, required(fields, "experiment_id"))
    _change(conductor, one.name, tags={required(fields, "key"): str(fields.get("value", ""))})
    return {}


def delete_tag(conductor: Conductor, fields: Fields) -> Any:
    one = by_id(conductor, required(fields, "experiment_id"))
    key = required(fields, "key")
    if key not in one.content.get("tags", {}):
        raise Fault(DOES_NOT_EXIST, f"experiment {one.title!r} has no tag {key!r}")
    _change(conductor, one.name, tags={key: None})
    return {}


def stages_of(view_type: Any) -> tuple[str, ...]:
    names = {"ACTIVE_ONLY": (ACTIVE,), "DELETED_ONLY": (DELETED,)}
    numbered = {"1": "ACTIVE_ONLY", "2": "DELETED_ONLY", "3": "ALL"}
    word = numbered.get(view_type, str(view_type or "ACTIVE_ONLY").upper())
    return names.get(word, (ACTIVE, DELETED))


def page(name: str, found: list[Any], fields: Fields, usual: int) -> dict[str, Any]:
    offset = offset_of(fields)
    most = max(1, min(whole(fields, "max_results", usual), _MOST_AT_ONCE))
    shown: dict[str, Any] = {name: found[offset : offset + most]}
    if len(found) > offset + most:
        shown["next_page_token"] = str(offset + most)
    return shown


def offset_of(fields: Fields) -> int:
    token = fields.get("page_token") or "0"
    if not str(token).isdecimal():
        raise Fault(INVALID, f"{token!r} is no page token of this server")
    return int(token)


def sort(shapes: list[dict[str, Any]], order: Order) -> None:
    """Those without the value come last, in either direction."""

    def value(shape: dict[str, Any]) -> Any:
        if order.kind == ATTRIBUTE:
            return shape.get(order.key)
        return next((tag["value"] for tag in shape.get("tags", ()) if tag["key"] == order.key), None)

    shapes.sort(key=lambda shape: value(shape) or "" if isinstance(value(shape), str) else value(shape) or 0)
    if not order.ascending:
        shapes.reverse()
    shapes.sort(key=lambda shape: value(shape) is None)


def _values(one: Experiment) -> Callable[[str, str], Any]:
    shape, tags = one.shape(), one.content.get("tags", {})
    return lambda kind, key: tags.get(key) if kind == TAG else shape.get(key)


def _all(conductor: Conductor) -> list[Experiment]:
    documents = {document.id: document for document in Documents(conductor.rooms.database).of(EXPERIMENT)}
    named = dict(conductor.rooms.runs.experiments())
    named.setdefault(DEFAULT, min(named.values(), default=clock.now()))
    return [_experiment(name, created_at, documents.get(name)) for name, created_at in named.items()]


def _experiment(name: str, created_at: float, document: Document | None) -> Experiment:
    content = document.content if document else {}
    return Experiment(name, content.get("title", name), created_at, content)


def _free_name(title: str, taken: set[str]) -> str:
    name = to_experiment_name(title)
    # a name may be that of an experiment which has another title since
    return name if name not in taken else _free_name(f"{title}-", taken)


def _change(conductor: Conductor, name: str, tags: Mapping[str, str | None] | None = None, **values: Any) -> None:
    def changed(before: dict[str, Any]) -> dict[str, Any]:
        merged = {**before.get("tags", {}), **(tags or {})}
        kept = {key: value for key, value in merged.items() if value is not None}
        return {**before, **values, "tags": kept, "changed_at": clock.now()}

    Documents(conductor.rooms.database).change(EXPERIMENT, name, name, changed)
