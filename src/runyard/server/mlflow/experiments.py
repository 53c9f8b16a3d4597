"""MLflow's endpoints for experiments. Names in MLflow are arbitrary text: the yard stores them as titles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from runyard import clock
from runyard.orchestrator.conductor import Conductor
from runyard.server.mlflow import filters, limits
from runyard.server.mlflow.constants import (
    ACTIVE,
    DEFAULT,
    DELETED,
    STAGE,
    from_pairs,
    milliseconds,
    to_experiment_id,
    to_experiment_name,
    to_pairs,
)
from runyard.server.mlflow.errors import (
    ALREADY_EXISTS,
    DOES_NOT_EXIST,
    INVALID,
    INVALID_STATE,
    MlflowError,
    integer_field,
    invalid_value,
    require,
)
from runyard.store.documents import EXPERIMENT, Document, Documents
from runyard.store.experiments import ExperimentRecord, ExperimentStore
from runyard.store.run_search import ATTRIBUTE, TAG, Order

_MAX_PAGE_SIZE = 50_000
_DEFAULT_ORDER = [Order(ATTRIBUTE, "creation_time", ascending=False)]
Fields = dict[str, Any]


@dataclass(frozen=True)
class Experiment:
    name: str  # in the yard
    title: str  # its name in MLflow
    created_at: float
    content: dict[str, Any]

    @property
    def stage(self) -> str:
        return str(self.content.get("stage", ACTIVE))

    @property
    def artifact_location(self) -> str:
        """The place outside the yard where clients store artifacts of this experiment; usually empty."""
        return str(self.content.get("artifact_location", ""))

    def to_json(self) -> dict[str, Any]:
        return {
            "experiment_id": to_experiment_id(self.name),
            "name": self.title,
            "artifact_location": self.artifact_location or f"mlflow-artifacts:/experiments/{self.name}",
            "lifecycle_stage": self.stage,
            "creation_time": milliseconds(self.created_at),
            "last_update_time": milliseconds(self.content.get("changed_at", self.created_at)),
            "tags": to_pairs(self.content.get("tags", {})),
        }


def by_id(conductor: Conductor, experiment_id: str) -> Experiment:
    name = to_experiment_name(experiment_id)
    record = _store(conductor).find(name)
    if record is None and name != DEFAULT:
        raise MlflowError(DOES_NOT_EXIST, f"No Experiment with id={experiment_id} exists")
    document = Documents(conductor.components.database).get(EXPERIMENT, name)
    return _experiment(record or _unused_default(conductor), document)


def create(conductor: Conductor, fields: Fields) -> Any:
    title, tags = require(fields, "name"), from_pairs(fields.get("tags"))
    limits.check_experiment_name(title)
    limits.check_experiment_tags(tags)
    content = {"tags": tags, "changed_at": clock.now()}
    if location := str(fields.get("artifact_location") or "").rstrip("/"):
        limits.check_artifact_location(location)
        content["artifact_location"] = location
    if title == DEFAULT:
        _store(conductor).add(DEFAULT)  # every client has it, also before its first run
    record = _store(conductor).create(title, content)
    if record is None:
        raise _title_in_use(conductor, title)
    return {"experiment_id": to_experiment_id(record.name)}


def get(conductor: Conductor, fields: Fields) -> Any:
    return {"experiment": by_id(conductor, require(fields, "experiment_id")).to_json()}


def get_by_name(conductor: Conductor, fields: Fields) -> Any:
    title = require(fields, "experiment_name")
    record = _store(conductor).find_by_title(title)
    if record is None and title == DEFAULT and _store(conductor).find(DEFAULT) is None:
        record = _unused_default(conductor)
    if record is None:
        raise MlflowError(DOES_NOT_EXIST, f"no experiment {title!r}")
    document = Documents(conductor.components.database).get(EXPERIMENT, record.name)
    return {"experiment": _experiment(record, document).to_json()}


def search(conductor: Conductor, fields: Fields) -> Any:
    comparisons = filters.parse(fields.get("filter"), filters.EXPERIMENTS)
    orders = filters.parse_orders(fields.get("order_by") or (), filters.EXPERIMENT_ORDERS)
    stages = lifecycle_stages(fields.get("view_type"))
    results = []
    for experiment in _all(conductor):
        if experiment.stage in stages and filters.matches(comparisons, _values(experiment)):
            results.append(experiment.to_json())
    for order in [Order(ATTRIBUTE, "experiment_id", not orders), *reversed(orders or _DEFAULT_ORDER)]:
        results.sort(key=itemgetter(order.key), reverse=not order.ascending)
    return page("experiments", results, fields, 1000)


def update(conductor: Conductor, fields: Fields) -> Any:
    experiment = by_id(conductor, require(fields, "experiment_id"))
    title = require(fields, "new_name")
    limits.check_experiment_name(title)
    if experiment.stage == DELETED:
        raise MlflowError(INVALID_STATE, f"cannot rename the deleted experiment {experiment.title!r}; restore it first")
    for name in {experiment.name, DEFAULT} if title == DEFAULT else {experiment.name}:
        _store(conductor).add(name)  # the default experiment may have no record yet
    if not _store(conductor).rename(experiment.name, title):
        raise _title_in_use(conductor, title)
    _change(conductor, experiment.name)
    return {}


def delete(conductor: Conductor, fields: Fields) -> Any:
    """Delete an experiment and all its runs, until it is restored."""
    _move(conductor, require(fields, "experiment_id"), ACTIVE, DELETED)
    return {}


def restore(conductor: Conductor, fields: Fields) -> Any:
    """Restore an experiment and all its runs; as in MLflow also those that were deleted before the experiment."""
    _move(conductor, require(fields, "experiment_id"), DELETED, ACTIVE)
    return {}


def set_tag(conductor: Conductor, fields: Fields) -> Any:
    experiment = by_id(conductor, require(fields, "experiment_id"))
    tags = {require(fields, "key"): str(fields.get("value", ""))}
    limits.check_experiment_tags(tags)
    check_active(experiment)
    _change(conductor, experiment.name, tags=tags)
    return {}


def delete_tag(conductor: Conductor, fields: Fields) -> Any:
    experiment = by_id(conductor, require(fields, "experiment_id"))
    key = require(fields, "key")
    check_active(experiment)
    if key not in experiment.content.get("tags", {}):
        raise MlflowError(DOES_NOT_EXIST, f"No tag with name: {key} in experiment {experiment.title!r}")
    _change(conductor, experiment.name, tags={key: None})
    return {}


def check_active(experiment: Experiment) -> None:
    if experiment.stage == DELETED:
        raise MlflowError(
            INVALID,
            f"The experiment {experiment.title!r} must be in the 'active' state. Current state is deleted.",
            hint="restore it first",
        )


def lifecycle_stages(view_type: Any) -> tuple[str, ...]:
    names = {"ACTIVE_ONLY": (ACTIVE,), "DELETED_ONLY": (DELETED,)}
    enum_values = {"1": "ACTIVE_ONLY", "2": "DELETED_ONLY", "3": "ALL"}
    name = enum_values.get(view_type, str(view_type or "ACTIVE_ONLY").upper())
    return names.get(name, (ACTIVE, DELETED))


def page(name: str, results: list[Any], fields: Fields, default_size: int) -> dict[str, Any]:
    offset = page_offset(fields)
    size = integer_field(fields, "max_results", default_size)
    if not 0 < size <= _MAX_PAGE_SIZE:
        raise invalid_value("max_results", size, f"It must be a positive integer and at most {_MAX_PAGE_SIZE}")
    content: dict[str, Any] = {name: results[offset : offset + size]}
    if len(results) > offset + size:
        content["next_page_token"] = str(offset + size)
    return content


def page_offset(fields: Fields) -> int:
    token = fields.get("page_token") or "0"
    if not str(token).isdecimal():
        raise MlflowError(INVALID, f"Invalid page token {token!r}")
    return int(token)


def _values(experiment: Experiment) -> Callable[[str, str], Any]:
    attributes, tags = experiment.to_json(), experiment.content.get("tags", {})
    return lambda kind, key: tags.get(key) if kind == TAG else attributes.get(key)


def _all(conductor: Conductor) -> list[Experiment]:
    documents = {document.id: document for document in Documents(conductor.components.database).find(EXPERIMENT)}
    records = _store(conductor).all()
    if all(record.name != DEFAULT for record in records):
        records.append(_unused_default(conductor))
    return [_experiment(record, documents.get(record.name)) for record in records]


def _experiment(record: ExperimentRecord, document: Document | None) -> Experiment:
    return Experiment(record.name, record.title, record.created_at, document.content if document else {})


def _unused_default(conductor: Conductor) -> ExperimentRecord:
    """MLflow's default experiment before its first run, a millisecond older than the yard's first experiment."""
    oldest = min((record.created_at for record in _store(conductor).all()), default=clock.now())
    return ExperimentRecord(DEFAULT, DEFAULT, oldest - 0.001)


def _title_in_use(conductor: Conductor, title: str) -> MlflowError:
    record = _store(conductor).find_by_title(title)
    is_deleted = record is not None and by_id(conductor, record.name).stage == DELETED
    advice = " (it was deleted; restore it, or choose another name)" if is_deleted else ""
    return MlflowError(ALREADY_EXISTS, f"Experiment(name={title}) already exists{advice}")


def _store(conductor: Conductor) -> ExperimentStore:
    return ExperimentStore(conductor.components.database)


def _move(conductor: Conductor, experiment_id: str, source: str, target: str) -> None:
    experiment = by_id(conductor, experiment_id)
    if experiment.stage != source:
        raise MlflowError(DOES_NOT_EXIST, f"No {source} Experiment with id={experiment_id} exists: it is {target}")
    run_value = DELETED if target == DELETED else None
    for run_id in _store(conductor).set_stage(experiment.name, target, STAGE, run_value):
        conductor.notifier.notify(run_id)


def _change(conductor: Conductor, name: str, tags: Mapping[str, str | None] | None = None, **values: Any) -> None:
    def apply(content: dict[str, Any]) -> dict[str, Any]:
        merged = {**content.get("tags", {}), **(tags or {})}
        new_tags = {key: value for key, value in merged.items() if value is not None}
        return {**content, **values, "tags": new_tags, "changed_at": clock.now()}

    Documents(conductor.components.database).change(EXPERIMENT, name, name, apply)
