"""SQL conditions and orders for searching runs by metrics, parameters, tags and attributes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, Union

from sqlalchemy import (
    ColumnElement,
    Float,
    Select,
    Text,
    and_,
    case,
    cast,
    exists,
    func,
    literal,
    select,
    text,
    type_coerce,
)

from runyard.lifecycle.state import RunState
from runyard.store import schema
from runyard.store.run_labels import Labels

METRIC, PARAM, TAG, ATTRIBUTE, DATASET = "metric", "param", "tag", "attribute", "dataset"
ARTIFACT_URI = "mlflow.artifactUri"  # the property of a run whose artifacts are stored outside the yard
_runs = schema.runs.c


class RunFilters(TypedDict, total=False):
    experiment: str | None
    parent_id: str | None
    run_ids: Sequence[str] | None
    type: str | None
    tags: Labels | None  # required labels; the value None matches any value of the key
    properties: Labels | None
    states: Iterable[RunState] | None
    include_children: bool
    fragment: str | None  # the beginning or end of the id, or the beginning of a part of it after "_"
    before: int | None  # only runs with a smaller number, for paging


@dataclass(frozen=True)
class Comparison:
    kind: str
    key: str
    operator: str
    value: Union[str, float, tuple[str, ...], None]


@dataclass(frozen=True)
class Order:
    kind: str
    key: str
    ascending: bool


def filtered(
    query: Select[Any],
    *,
    experiment: str | None = None,
    parent_id: str | None = None,
    run_ids: Sequence[str] | None = None,
    type: str | None = None,
    tags: Labels | None = None,
    properties: Labels | None = None,
    states: Iterable[RunState] | None = None,
    include_children: bool = False,
    fragment: str | None = None,
    before: int | None = None,
) -> Select[Any]:
    """Restrict a query of runs. The arguments are those of :class:`RunFilters`."""
    if experiment is not None:
        query = query.where(_runs.experiment == experiment)
    if parent_id is not None:
        query = query.where(_runs.parent_id == parent_id)
    elif run_ids is not None:
        query = query.where(_runs.run_id.in_(run_ids))
    elif not include_children:
        query = query.where(_runs.parent_id.is_(None))
    if fragment is not None:
        run_id = _runs.run_id
        begins = run_id.startswith(fragment, autoescape=True) | run_id.contains(f"_{fragment}", autoescape=True)
        query = query.where(begins | run_id.endswith(fragment, autoescape=True))
    if type is not None:
        query = query.where(_runs.type == type)
    if states is not None:
        query = query.where(_runs.state.in_([state.value for state in states]))
    if before is not None:
        query = query.where(_runs.number < before)
    for table, labels in ((schema.tags, tags), (schema.properties, properties)):
        for key, value in (labels or {}).items():
            has_key = and_(table.c.run_id == _runs.run_id, table.c.key == key)
            query = query.where(exists().where(has_key if value is None else and_(has_key, table.c.value == value)))
    return query


def condition(test: Comparison) -> ColumnElement[bool]:
    """Build the condition. A run without the compared value matches only IS NULL."""
    if test.kind == METRIC:
        table = schema.series.c
        value = _number(table.last)
        return exists().where(table.run_id == _runs.run_id, table.name == test.key, _compare(value, test))
    if test.kind in (PARAM, TAG):
        labels = (schema.params if test.kind == PARAM else schema.tags).c
        is_label = and_(labels.run_id == _runs.run_id, labels.key == test.key)
        if test.operator == "IS NULL":
            return ~exists().where(is_label)
        if test.operator == "IS NOT NULL":
            return exists().where(is_label)
        return exists().where(is_label, _compare(labels.value, test))
    if test.kind == DATASET:
        return _dataset(test)
    if test.key == "status":
        return _runs.state.in_([state.value for state in RunState if _status_matches(state, test)])
    return _compare(_attribute(test.key), test)


def ordering(order: Sequence[Order]) -> list[ColumnElement[Any]]:
    """Build the order, as MLflow defines it.

    In both directions, runs whose metric is NaN come after those with a number, and runs without the value come last.
    Ties are sorted by start time, newest first, then by id.
    """
    columns: list[ColumnElement[Any]] = []
    for key in order:
        value = _sort_value(key, _number)
        if key.kind == METRIC:
            columns.append(func.coalesce(_sort_value(key, _rank), 2))
        columns.append((value.asc() if key.ascending else value.desc()).nulls_last())
    if not any(key.kind == ATTRIBUTE and key.key == "start_time" for key in order):
        columns.append(_attribute("start_time").desc())
    return [*columns, _runs.run_id]


def like(value: str, pattern: str) -> bool:
    """Match like SQL: ``%`` is any text, ``_`` any character."""
    parts = (".*" if c == "%" else "." if c == "_" else re.escape(c) for c in pattern)
    return re.fullmatch("".join(parts), value, re.DOTALL) is not None


MLFLOW_STATUS = {
    **dict.fromkeys((RunState.NOT_STARTED, RunState.PREPARING, RunState.QUEUED, RunState.STARTING), "SCHEDULED"),
    **dict.fromkeys((RunState.RUNNING, RunState.FINALIZING, RunState.CANCEL_REQUESTED), "RUNNING"),
    RunState.COMPLETED: "FINISHED",
    RunState.FAILED: "FAILED",
    RunState.CANCELED: "KILLED",
}


def _status_matches(state: RunState, test: Comparison) -> bool:
    status = MLFLOW_STATUS.get(state, "RUNNING")
    if isinstance(test.value, tuple):
        return (status in {word.upper() for word in test.value}) == (test.operator == "IN")
    pattern = str(test.value).upper()
    if test.operator in ("LIKE", "ILIKE"):
        return like(status, pattern)
    return (status == pattern) == (test.operator == "=")


def _attribute(key: str) -> ColumnElement[Any]:
    if key == "start_time":
        return func.coalesce(_runs.started_at, _runs.created_at) * 1000.0
    if key == "end_time":
        return _runs.ended_at * 1000.0
    if key == "run_name":
        return func.coalesce(_runs.name, _runs.run_id)
    if key == "user_id":
        return func.coalesce(_runs.submitted_by, "")
    if key == "artifact_uri":
        labels = schema.properties.c
        uri = select(labels.value).where(labels.run_id == _runs.run_id, labels.key == ARTIFACT_URI)
        return func.coalesce(uri.correlate(schema.runs).scalar_subquery(), literal("mlflow-artifacts:/") + _runs.run_id)
    return _runs.run_id


def _sort_value(order: Order, of_metric: Callable[[ColumnElement[Any]], ColumnElement[Any]]) -> ColumnElement[Any]:
    query: Select[Any]
    if order.kind == METRIC:
        table = schema.series.c
        query = select(of_metric(table.last)).where(table.run_id == _runs.run_id, table.name == order.key)
    elif order.kind in (PARAM, TAG):
        labels = (schema.params if order.kind == PARAM else schema.tags).c
        query = select(labels.value).where(labels.run_id == _runs.run_id, labels.key == order.key)
    elif order.key == "status":
        return case({state.value: word for state, word in MLFLOW_STATUS.items()}, value=_runs.state)
    else:
        return _attribute(order.key)
    return query.correlate(schema.runs).scalar_subquery()


def _number(last: ColumnElement[Any]) -> ColumnElement[Any]:
    """Convert the last value of a metric, which is JSON as Python writes it, with words for infinities."""
    json_text = type_coerce(last, Text)
    words = {"Infinity": 9e999, "-Infinity": -9e999, "true": 1.0, "false": 0.0}
    return case(
        *((json_text == word, literal(number, Float)) for word, number in words.items()),
        (json_text.op("GLOB")("[-0-9]*"), cast(json_text, Float)),
        else_=None,
    )


def _rank(last: ColumnElement[Any]) -> ColumnElement[Any]:
    """0 for numbers, 1 for NaN, 2 for anything else."""
    return case((type_coerce(last, Text) == "NaN", 1), (_number(last).is_(None), 2), else_=0)


def _compare(value: ColumnElement[Any], test: Comparison) -> ColumnElement[bool]:
    operand: Any = test.value
    if test.operator == "LIKE":  # SQLite's own LIKE ignores case
        return value.op("GLOB")(_glob(operand)).is_(True)
    if test.operator == "ILIKE":
        return func.lower(value).like(operand.lower())
    if test.operator in ("IN", "NOT IN"):
        return value.in_(operand) if test.operator == "IN" else value.not_in(operand)
    comparisons: dict[str, ColumnElement[bool]] = {
        "=": value == operand,
        "!=": value != operand,
        "<": value < operand,
        "<=": value <= operand,
        ">": value > operand,
        ">=": value >= operand,
    }
    return comparisons[test.operator]


def _glob(pattern: str) -> str:
    return "".join({"%": "*", "_": "?"}.get(c, f"[{c}]" if c in "*?[" else c) for c in pattern)


def _dataset(test: Comparison) -> ColumnElement[bool]:
    table = schema.documents.c
    each = func.json_each(table.content, "$.datasets").table_valued("value").alias("each_input")
    path = "$.context" if test.key == "context" else f"$.dataset.{test.key}"
    value = func.json_extract(each.c.value, path)
    return exists(select(text("1")).select_from(schema.documents, each)).where(
        table.kind == "inputs", table.id == _runs.run_id, _compare(value, test)
    )
