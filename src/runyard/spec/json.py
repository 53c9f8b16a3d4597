"""Conversion between dataclasses and JSON values. Unknown fields are an error that names them."""

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
    """Convert a dataclass, or a container of dataclasses, to dicts, lists and scalars."""
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(k): to_json(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(v) for v in value]
    return value


def replace_non_finite(value: Any) -> Any:
    """Replace non-finite numbers by the strings NaN, Infinity and -Infinity.

    JSON has no such numbers: other programs refuse the bare words that Python writes, and null would mean that no
    value was logged.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, (list, tuple)):
        return [replace_non_finite(item) for item in value]
    if isinstance(value, dict):
        return {key: replace_non_finite(item) for key, item in value.items()}
    return value


def from_json(kind: type[T], data: Any) -> T:
    """The inverse of :func:`to_json` for the dataclass ``kind``."""
    return typing.cast(T, _build(kind, data, kind.__name__))


def _build(kind: Any, data: Any, where: str) -> Any:
    origin = typing.get_origin(kind)
    if kind is Any:
        return data
    if origin is typing.Union or origin is getattr(types, "UnionType", typing.Union):
        inner = [a for a in typing.get_args(kind) if a is not type(None)]
        if data is None and len(inner) < len(typing.get_args(kind)):
            return None
        if len(inner) == 1:
            return _build(inner[0], data, where)
        # a union of dataclasses, distinguished by their `kind`
        by_kind = {i.kind: i for i in inner if dataclasses.is_dataclass(i) and hasattr(i, "kind")}
        return _build(_select(by_kind, data, where), data, where) if by_kind else data
    if origin in (tuple, list):
        _expect(data, (list, tuple), "a list", where)
        item = (typing.get_args(kind) or (Any,))[0]
        return origin(_build(item, d, where) for d in data)
    if origin is dict:
        _expect(data, dict, "an object", where)
        item = (typing.get_args(kind) or (Any, Any))[1]
        return {k: _build(item, v, where) for k, v in data.items()}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        try:
            return kind(data)
        except ValueError:
            choices = ", ".join(repr(member.value) for member in kind)
            raise UserErrorException(f"{where} must be one of {choices}, got {data!r}") from None
    if dataclasses.is_dataclass(kind):
        hints = _hints(kind)
        _expect(data, dict, "an object", where)
        unknown = sorted(set(data) - set(hints))
        if unknown:
            raise UserErrorException(
                f"{where} has no field {', '.join(map(repr, unknown))}",
                hint=f"fields: {', '.join(sorted(hints))}",
            )
        make: Any = kind
        values = {k: _build(hints[k], v, f"{where}.{k}") for k, v in data.items()}
        try:
            return make(**values)
        except TypeError:
            missing = [f.name for f in dataclasses.fields(kind) if f.name not in values and _is_required(f)]
            raise UserErrorException(f"{where} lacks {', '.join(map(repr, missing))}") from None
    if kind is str:
        _expect(data, str, "a string", where)
    elif kind in (int, float):
        _expect(data, (int, float), "a number", where)
    elif kind is bool:
        _expect(data, bool, "true or false", where)
    return data


def _select(by_kind: dict[Any, Any], data: Any, where: str) -> Any:
    _expect(data, dict, "an object", where)
    name = data.get("kind")
    if not isinstance(name, str) or name not in by_kind:
        raise UserErrorException(f"{where}.kind must be one of {', '.join(map(repr, by_kind))}, got {name!r}")
    return by_kind[name]


def _expect(data: Any, kinds: Any, expected: str, where: str) -> None:
    if not isinstance(data, kinds):
        raise UserErrorException(f"{where} must be {expected}, got {data!r}")


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


_hint_cache: dict[Any, dict[str, Any]] = {}


def _hints(kind: Any) -> dict[str, Any]:
    if kind not in _hint_cache:
        _hint_cache[kind] = typing.get_type_hints(kind)
    return _hint_cache[kind]
