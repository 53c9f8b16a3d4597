"""Example inputs of a model: names, batch axes, and batches of other sizes."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

from runyard.errors import OnnxExportException

Batch = Union[bool, int, Mapping[str, Optional[int]]]


@dataclass(frozen=True)
class Case:
    """One call of the model. The values are arrays or tensors in the order of the names."""

    name: str
    values: tuple[Any, ...]
    batch: Optional[int] = None


@dataclass(frozen=True)
class ExampleInputs:
    names: tuple[str, ...]
    axes: tuple[Optional[int], ...]  # the batch axis of each input; all None if the batch size is fixed
    cases: tuple[Case, ...]
    by_name: bool  # the model is called with keyword arguments

    @property
    def dynamic(self) -> bool:
        return any(axis is not None for axis in self.axes)

    @property
    def first(self) -> Case:
        return self.cases[0]


def parse_example_inputs(
    value: Any, forward: Any, dynamic_batch: Batch, names: Sequence[str] | None = None
) -> ExampleInputs:
    """Parse an array or tensor, a tuple of them, a dict by name, or a list of such calls."""
    examples = value if isinstance(value, list) else [value]
    if not examples:
        raise OnnxExportException("example_inputs is empty", hint="pass at least one input, as the model is called")
    calls = [_as_call(example) for example in examples]
    by_name = isinstance(examples[0], Mapping)
    input_names = tuple(calls[0]) if by_name else _positional(forward, len(calls[0]), names)
    values = []
    for number, call in enumerate(calls, 1):
        if len(call) != len(input_names) or (by_name and set(call) != set(input_names)):
            raise OnnxExportException(f"example {number} differs from the first: {', '.join(map(str, call))}")
        values.append(tuple(call[name] for name in input_names) if by_name else tuple(call.values()))
    for name, value in zip(input_names, values[0]):
        if not hasattr(value, "shape"):
            raise OnnxExportException(
                f"the input {name!r} must be a tensor or an array, got {_kind(value)}",
                hint="wrap the model in one whose inputs are tensors: forward(self, x, h, c)",
            )
    axes = _axes(input_names, values[0], dynamic_batch)
    cases = tuple(Case(f"example {n}", row, _size(row, axes)) for n, row in enumerate(values, 1))
    return ExampleInputs(input_names, axes, cases, by_name)


def _as_call(call: Any) -> dict[Any, Any]:
    if isinstance(call, Mapping):
        return dict(call)
    return dict(enumerate(call if isinstance(call, tuple) else (call,)))


def _positional(forward: Any, count: int, names: Sequence[str] | None) -> tuple[str, ...]:
    if names is not None:
        if len(names) != count:
            raise OnnxExportException(f"input_names must have {count} names, got {len(names)}")
        return tuple(names)
    try:
        parameters = [p for p in inspect.signature(forward).parameters.values() if p.name != "self"]
    except (TypeError, ValueError):
        parameters = []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameter_names = [parameter.name for parameter in parameters if parameter.kind in kinds][:count]
    if len(parameter_names) == count:
        return tuple(parameter_names)
    return ("input",) if count == 1 else tuple(f"input_{number}" for number in range(count))


def _axes(names: tuple[str, ...], values: tuple[Any, ...], dynamic_batch: Batch) -> tuple[Optional[int], ...]:
    if dynamic_batch is False:
        return (None,) * len(names)
    if isinstance(dynamic_batch, Mapping):
        unknown = sorted(set(dynamic_batch) - set(names))
        if unknown:
            raise OnnxExportException(
                f"dynamic_batch names {unknown[0]!r}, which is not an input", hint=f"inputs: {', '.join(names)}"
            )
        axes = tuple(dynamic_batch.get(name) for name in names)
    else:
        axis = 0 if dynamic_batch is True else int(dynamic_batch)
        axes = tuple(axis if len(value.shape) > axis else None for value in values)
    sizes = {name: int(v.shape[axis]) for name, v, axis in zip(names, values, axes) if axis is not None}
    if len(set(sizes.values())) > 1:
        size_texts = ", ".join(f"{name} has {size}" for name, size in sizes.items())
        raise OnnxExportException(
            f"the inputs have different batch sizes: {size_texts} along the batch axis",
            hint="dynamic_batch={'x': 0, 'h': 1} sets the axis of each input (None: no batch); or dynamic_batch=False",
        )
    return axes


def _size(values: tuple[Any, ...], axes: tuple[Optional[int], ...]) -> Optional[int]:
    return next((int(value.shape[axis]) for value, axis in zip(values, axes) if axis is not None), None)


def _kind(value: Any) -> str:
    return f"{type(value).__name__} {value!r}"[:80]


def resize(inputs: ExampleInputs, case: Case, size: int) -> Case:
    """Return a batch of another size that repeats or omits rows."""

    def rows(value: Any, axis: Optional[int]) -> Any:
        if axis is None:
            return value
        indices = [number % int(value.shape[axis]) for number in range(size)]
        return value[(slice(None),) * axis + (indices,)]

    values = tuple(rows(value, axis) for value, axis in zip(case.values, inputs.axes))
    return Case(f"{case.name} as a batch of {size}", values, size)


def other_batch_sizes(inputs: ExampleInputs) -> list[Case]:
    """Return a batch of one and a batch larger than all examples, to detect an export with a fixed batch size."""
    if not inputs.dynamic:
        return []
    seen_sizes = {case.batch for case in inputs.cases}
    largest = max(size for size in seen_sizes if size is not None)
    return [resize(inputs, inputs.first, size) for size in (1, largest + 3) if size not in seen_sizes]
