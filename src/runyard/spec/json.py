"""Values to JSON and back. A field that is not known is named in the error, never dropped."""

from __future__ import annotations

import dataclasses
import enum
import math
import types
import typing
from typing import Any, TypeVar

from runyard.errors import UserErrorException

T = TypeVar("T")


def to_json(value: Any) -> Any:
    """Plain dicts, lists and scalars for a dataclass (or a container of them)."""
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(k): to_json(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(v) for v in value]
    return value


def sayable(value: Any) -> Any:
    """The same, with the texts NaN, Infinity and -Infinity for numbers that JSON does not have: other programs refuse
    the bare words that Python writes, and null would say that nothing was logged."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, (list, tuple)):
        return [sayable(item) for item in value]
    if isinstance(value, dict):
        return {key: sayable(item) for key, item in value.items()}
    return value


def from_json(kind: type[T], data: Any) -> T:
    """The dataclass ``kind`` from what :func:`to_json` made of it."""
    return typing.cast(T, _build(kind, data, kind.__name__))


def _build(kind: Any, data: Any, where: str) -> Any:
    origin = typing.get_origin(kind)
    if kind is Any or data is None:
        return data
    if origin is typing.Union or origin is getattr(types, "UnionType", typing.Union):
        inner = [a for a in typing.get_args(kind) if a is not type(None)]
        if len(inner) == 1:
            return _build(inner[0], data, where)
        # a union of values: each says by its `kind` which one it is
        by_kind = {i.kind: i for i in inner if dataclasses.is_dataclass(i) and hasattr(i, "kind")}
        return _build(by_kind[data["kind"]], data, where) if by_kind else data
    if origin in (tuple, list):
        _expect(data, (list, tuple), "a list", where)
        item = (typing.get_args(kind) or (Any,))[0]
        return origin(_build(item, d, where) for d in data)
    if origin is dict:
        _expect(data, dict, "an object", where)
        item = (typing.get_args(kind) or (Any, Any))[1]
        return {k: _build(item, v, where) for k, v in data.items()}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return kind(data)
    if dataclasses.is_dataclass(kind):
        hints = _hints(kind)
        _expect(data, dict, "an object", where)
        unknown = sorted(set(data) - set(hints))
        if unknown:
            raise UserErrorException(
                f"{where} has no field {', '.join(map(repr, unknown))}",
                hint=f"its fields: {', '.join(sorted(hints))}",
            )
        make: Any = kind
        values = {k: _build(hints[k], v, f"{where}.{k}") for k, v in data.items()}
        try:
            return make(**values)
        except TypeError:
            lacking = [f.name for f in dataclasses.fields(kind) if f.name not in values and _is_required(f)]
            raise UserErrorException(f"{where} lacks {', '.join(map(repr, lacking))}") from None
    if kind is str:
        _expect(data, str, "a text", where)
    elif kind in (int, float):
        _expect(data, (int, float), "a number", where)
    return data


def _expect(data: Any, kinds: Any, what: str, where: str) -> None:
    if not isinstance(data, kinds):
        raise UserErrorException(f"{where} must be {what}, not {data!r}")


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


_known_hints: dict[Any, dict[str, Any]] = {}


def _hints(kind: Any) -> dict[str, Any]:
    if kind not in _known_hints:
        _known_hints[kind] = typing.get_type_hints(kind)
    return _known_hints[kind]
