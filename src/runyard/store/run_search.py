"""Runs by comparisons of what they measured, were told and are: the database does the searching and the sorting."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Union

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

METRIC, PARAM, TAG, ATTRIBUTE, DATASET = "metric", "param", "tag", "attribute", "dataset"
_runs = schema.runs.c


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


def condition(one: Comparison) -> ColumnElement[bool]:
    """A run that lacks what is compared does not match, whatever the comparison; only IS NULL asks for that."""
    if one.kind == METRIC:
        table = schema.series.c
        value = _number(table.last)
        return exists().where(table.run_id == _runs.run_id, table.name == one.key, _compared(value, one))
    if one.kind in (PARAM, TAG):
        labels = (schema.params if one.kind == PARAM else schema.tags).c
        own = and_(labels.run_id == _runs.run_id, labels.key == one.key)
        if one.operator == "IS NULL":
            return ~exists().where(own)
        if one.operator == "IS NOT NULL":
            return exists().where(own)
        return exists().where(own, _compared(labels.value, one))
    if one.kind == DATASET:
        return _dataset(one)
    if one.key == "status":
        return _runs.state.in_([state.value for state in RunState if _status_matches(state, one)])
    return _compared(_attribute(one.key), one)


def ordering(order: Sequence[Order]) -> list[ColumnElement[Any]]:
    """Runs without the value come last, in either direction; then the newest first."""
    found: list[ColumnElement[Any]] = []
    for one in order:
        value = _sorted_by(one)
        found.append((value.asc() if one.ascending else value.desc()).nulls_last())
    return [*found, _attribute("start_time").desc(), _runs.number.desc()]


def like(value: str, pattern: str) -> bool:
    """``%`` is any text, ``_`` any character, as in SQL."""
    parts = (".*" if c == "%" else "." if c == "_" else re.escape(c) for c in pattern)
    return re.fullmatch("".join(parts), value, re.DOTALL) is not None


MLFLOW_STATUS = {
    **dict.fromkeys((RunState.NOT_STARTED, RunState.PREPARING, RunState.QUEUED, RunState.STARTING), "SCHEDULED"),
    **dict.fromkeys((RunState.RUNNING, RunState.FINALIZING, RunState.CANCEL_REQUESTED), "RUNNING"),
    RunState.COMPLETED: "FINISHED",
    RunState.FAILED: "FAILED",
    RunState.CANCELED: "KILLED",
}


def _status_matches(state: RunState, one: Comparison) -> bool:
    status = MLFLOW_STATUS.get(state, "RUNNING")
    if isinstance(one.value, tuple):
        return (status in {word.upper() for word in one.value}) == (one.operator == "IN")
    wanted = str(one.value).upper()
    if one.operator in ("LIKE", "ILIKE"):
        return like(status, wanted)
    return (status == wanted) == (one.operator == "=")


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
        return literal("mlflow-artifacts:/") + _runs.run_id
    return _runs.run_id


def _sorted_by(one: Order) -> ColumnElement[Any]:
    query: Select[Any]
    if one.kind == METRIC:
        table = schema.series.c
        query = select(_number(table.last)).where(table.run_id == _runs.run_id, table.name == one.key)
    elif one.kind in (PARAM, TAG):
        labels = (schema.params if one.kind == PARAM else schema.tags).c
        query = select(labels.value).where(labels.run_id == _runs.run_id, labels.key == one.key)
    elif one.key == "status":
        return case({state.value: word for state, word in MLFLOW_STATUS.items()}, value=_runs.state)
    else:
        return _attribute(one.key)
    return query.correlate(schema.runs).scalar_subquery()


def _number(last: ColumnElement[Any]) -> ColumnElement[Any]:
    """The last value of a metric is JSON as Python writes it, which has words for what is not finite."""
    said = type_coerce(last, Text)
    words = {"Infinity": 9e999, "-Infinity": -9e999, "true": 1.0, "false": 0.0}
    return case(
        *((said == word, literal(number, Float)) for word, number in words.items()),
        (said.op("GLOB")("[-0-9]*"), cast(said, Float)),
        else_=None,
    )


def _compared(value: ColumnElement[Any], one: Comparison) -> ColumnElement[bool]:
    given: Any = one.value
    if one.operator == "LIKE":  # SQLite's own LIKE takes letters of either case for the same
        return value.op("GLOB")(_glob(given)).is_(True)
    if one.operator == "ILIKE":
        return func.lower(value).like(given.lower())
    if one.operator in ("IN", "NOT IN"):
        return value.in_(given) if one.operator == "IN" else value.not_in(given)
    holds: dict[str, ColumnElement[bool]] = {
        "=": value == given,
        "!=": value != given,
        "<": value < given,
        "<=": value <= given,
        ">": value > given,
        ">=": value >= given,
    }
    return holds[one.operator]


def _glob(pattern: str) -> str:
    return "".join({"%": "*", "_": "?"}.get(c, f"[{c}]" if c in "*?[" else c) for c in pattern)


def _dataset(one: Comparison) -> ColumnElement[bool]:
    table = schema.documents.c
    each = func.json_each(table.content, "$.datasets").table_valued("value").alias("each_input")
    path = "$.context" if one.key == "context" else f"$.dataset.{one.key}"
    value = func.json_extract(each.c.value, path)
    return exists(select(text("1")).select_from(schema.documents, each)).where(
        table.kind == "inputs", table.id == _runs.run_id, _compared(value, one)
    )


__all__ = ["Comparison", "Order", "condition", "like", "ordering"]
