"""Inputs of a model: what was recorded, under which names, and as batches of other sizes."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

from runyard.errors import OnnxExportException

Batch = Union[bool, int, Mapping[str, Optional[int]]]


@dataclass(frozen=True)
class Case:
    """One call of the model; the values are arrays or tensors, in the order of the names."""

    name: str
    values: tuple[Any, ...]
    batch: Optional[int] = None


@dataclass(frozen=True)
class Recorded:
    names: tuple[str, ...]
    axes: tuple[Optional[int], ...]  # of the batch, for each input; all None: every size is fixed
    cases: tuple[Case, ...]
    by_name: bool  # they were given by name

    @property
    def dynamic(self) -> bool:
        return any(axis is not None for axis in self.axes)

    @property
    def first(self) -> Case:
        return self.cases[0]


def recorded(example_inputs: Any, forward: Any, dynamic_batch: Batch, names: Sequence[str] | None = None) -> Recorded:
    """``example_inputs``: an array or tensor, a tuple of them, a dict by name; or a list of such calls."""
    calls = example_inputs if isinstance(example_inputs, list) else [example_inputs]
    if not calls:
        raise OnnxExportException("example_inputs is empty", hint="give at least one input, as the model is called")
    known = [_as_call(call) for call in calls]
    by_name = isinstance(calls[0], Mapping)
    found = tuple(known[0]) if by_name else _positional(forward, len(known[0]), names)
    values = []
    for number, call in enumerate(known, 1):
        if len(call) != len(found) or (by_name and set(call) != set(found)):
            raise OnnxExportException(f"recorded input {number} is not like the first: {', '.join(map(str, call))}")
        values.append(tuple(call[name] for name in found) if by_name else tuple(call.values()))
    for name, value in zip(found, values[0]):
        if not hasattr(value, "shape"):
            raise OnnxExportException(
                f"the input {name!r} is {_kind(value)}, not a tensor or an array",
                hint="wrap the model in one whose inputs are tensors: forward(self, x, h, c)",
            )
    axes = _axes(found, values[0], dynamic_batch)
    cases = tuple(Case(f"recorded {n}", one, _size(one, axes)) for n, one in enumerate(values, 1))
    return Recorded(found, axes, cases, by_name)


def _as_call(call: Any) -> dict[Any, Any]:
    if isinstance(call, Mapping):
        return dict(call)
    return dict(enumerate(call if isinstance(call, tuple) else (call,)))


def _positional(forward: Any, count: int, names: Sequence[str] | None) -> tuple[str, ...]:
    if names is not None:
        if len(names) != count:
            raise OnnxExportException(f"{len(names)} input_names were given for {count} inputs")
        return tuple(names)
    try:
        parameters = [p for p in inspect.signature(forward).parameters.values() if p.name != "self"]
    except (TypeError, ValueError):
        parameters = []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    found = [parameter.name for parameter in parameters if parameter.kind in kinds][:count]
    if len(found) == count:
        return tuple(found)
    return ("input",) if count == 1 else tuple(f"input_{number}" for number in range(count))


def _axes(names: tuple[str, ...], values: tuple[Any, ...], asked: Batch) -> tuple[Optional[int], ...]:
    if asked is False:
        return (None,) * len(names)
    if isinstance(asked, Mapping):
        unknown = sorted(set(asked) - set(names))
        if unknown:
            raise OnnxExportException(
                f"dynamic_batch names {unknown[0]!r}, which is no input", hint=f"inputs: {', '.join(names)}"
            )
        axes = tuple(asked.get(name) for name in names)
    else:
        axis = 0 if asked is True else int(asked)
        axes = tuple(axis if len(value.shape) > axis else None for value in values)
    sizes = {name: int(v.shape[axis]) for name, v, axis in zip(names, values, axes) if axis is not None}
    if len(set(sizes.values())) > 1:
        told = ", ".join(f"{name} has {size}" for name, size in sizes.items())
        raise OnnxExportException(
            f"the inputs are not one batch: {told} along their batch axis",
            hint="dynamic_batch={'x': 0, 'h': 1} names the axis of each, None for one without; or dynamic_batch=False",
        )
    return axes


def _size(values: tuple[Any, ...], axes: tuple[Optional[int], ...]) -> Optional[int]:
    return next((int(value.shape[axis]) for value, axis in zip(values, axes) if axis is not None), None)


def _kind(value: Any) -> str:
    return f"{type(value).__name__} {value!r}"[:80]


def resized(given: Recorded, case: Case, size: int) -> Case:
    """The same rows, as a batch of another size: over again, or fewer of them."""

    def rows(value: Any, axis: Optional[int]) -> Any:
        if axis is None:
            return value
        chosen = [number % int(value.shape[axis]) for number in range(size)]
        return value[(slice(None),) * axis + (chosen,)]

    values = tuple(rows(value, axis) for value, axis in zip(case.values, given.axes))
    return Case(f"{case.name} as a batch of {size}", values, size)


def other_sizes(given: Recorded) -> list[Case]:
    """A batch of one, and a larger one than was seen: where an export has fixed the size, it shows."""
    if not given.dynamic:
        return []
    seen = {case.batch for case in given.cases}
    largest = max(size for size in seen if size is not None)
    return [resized(given, given.first, size) for size in (1, largest + 3) if size not in seen]
