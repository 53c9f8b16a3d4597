"""Values to JSON and back. A field that is not known is named in the error, never dropped."""

from __future__ import annotations

import dataclasses
import enum
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


def from_json(kind: type[T], data: Any) -> T:
    """The dataclass ``kind`` from what :func:`to_json` made of it."""
    return typing.cast(T, _build(kind, data, kind.__name__))


def _build(kind: Any, data: Any, where: str) -> Any:
    origin = typing.get_origin(kind)
    if kind is Any or data is None:
        return data
    if origin is typing.Union or origin is getattr(types, "UnionType", typing.Union):
        inner = [a for a in typing.get_args(kind) if a is not type(None)]
        return _build(inner[0], data, where) if len(inner) == 1 else data
    if origin in (tuple, list):
        item = (typing.get_args(kind) or (Any,))[0]
        return origin(_build(item, d, where) for d in data)
    if origin is dict:
        item = (typing.get_args(kind) or (Any, Any))[1]
        return {k: _build(item, v, where) for k, v in data.items()}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return kind(data)
    if dataclasses.is_dataclass(kind):
        hints = _hints(kind)
        unknown = sorted(set(data) - set(hints))
        if unknown:
            raise UserErrorException(
                f"{where} has no field {', '.join(map(repr, unknown))}",
                hint=f"its fields: {', '.join(sorted(hints))}",
            )
        make: Any = kind
        return make(**{k: _build(hints[k], v, f"{where}.{k}") for k, v in data.items()})
    return data


_known_hints: dict[Any, dict[str, Any]] = {}


def _hints(kind: Any) -> dict[str, Any]:
    if kind not in _known_hints:
        _known_hints[kind] = typing.get_type_hints(kind)
    return _known_hints[kind]
