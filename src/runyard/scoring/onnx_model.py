"""An ONNX model as a service, with no code: JSON in, the model's numbers out; several requests in one call on demand.

``{"data": …}`` or the rows themselves for a model with one input, ``{"name": …, …}`` for one with several. What comes
back is the output's rows, or ``{"name": rows, …}`` where there are several outputs. Runs in an environment that has
ONNX Runtime and numpy; orjson is used where it is there.
"""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Optional

from runyard.scoring.entry_script import Unusable, tell_log
from runyard.scoring.request_head import Head
from runyard.scoring.responses import Answer, problem

_DTYPES = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    "tensor(int64)": "int64",
    "tensor(int32)": "int32",
    "tensor(int16)": "int16",
    "tensor(int8)": "int8",
    "tensor(uint8)": "uint8",
    "tensor(bool)": "bool",
    "tensor(string)": "str",
}


# what a JSON array may be, by the first letter of what the model takes
_KINDS = {"f": "iuf", "i": "iuf", "u": "iuf", "b": "b", "s": "U"}


class Misfit(Exception):
    """What was sent is not what the model takes."""


class Tensor(NamedTuple):
    name: str
    dtype: str
    shape: tuple[Optional[int], ...]  # None: any


class OnnxModel:
    methods = ("POST",)

    def __init__(self, path: Path, threads: int) -> None:
        try:
            import numpy
            import onnxruntime
        except ImportError as error:
            raise Unusable(f"an ONNX model is served by onnxruntime and numpy, and {error.name} is not here") from error
        self._numpy: Any = numpy
        self._loads, self._dumps = _codec(numpy)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        try:
            self._session: Any = onnxruntime.InferenceSession(str(path), options, providers=_providers(onnxruntime))
        except Exception as error:  # ONNX Runtime's own classes have no common one
            traceback.print_exc()
            raise Unusable(f"ONNX Runtime cannot load {path.name}: {error}") from error
        self.inputs = [_tensor(one) for one in self._session.get_inputs()]
        self.outputs = [_tensor(one) for one in self._session.get_outputs()]
        self._output_names = [one.name for one in self.outputs]
        both = (*self.inputs, *self.outputs)
        told = _sidecar(path)
        free = bool(self.inputs) and all(one.shape and one.shape[0] is None for one in both)
        # an axis of any size need not be that of the batch: whoever exported the model knows
        self.is_batchable = free and (told is None or _batches_by_rows(told))

    def answer(self, head: Head, body: bytes, request_id: str) -> Answer:
        try:
            results = self.run(self.arrays(body))
            return Answer(200, self.encoded(results))
        except Misfit as why:
            return problem(400, str(why), request_id)
        except Exception:  # noqa: BLE001  the edge: ONNX Runtime's own errors have no common class
            return failed(request_id)

    def run(self, feed: dict[str, Any]) -> list[Any]:
        results: list[Any] = self._session.run(self._output_names, feed)
        return results

    def arrays(self, body: bytes) -> dict[str, Any]:
        """What the model is fed with. Raises Misfit."""
        try:
            given = self._loads(body)
        except (ValueError, RecursionError) as error:
            raise Misfit(f"the body is not JSON: {error}") from error
        inputs = self.inputs
        if len(inputs) == 1:
            one = inputs[0]
            if isinstance(given, dict):
                given = given.get("data", given.get(one.name, given))
            if isinstance(given, dict):
                raise Misfit(f"the body must have 'data' or {one.name!r}")
            return {one.name: self._array(one, given)}
        if isinstance(given, dict) and isinstance(given.get("data"), dict):
            given = given["data"]
        if not isinstance(given, dict) or any(one.name not in given for one in inputs):
            raise Misfit(f"the body must be an object with {', '.join(repr(one.name) for one in inputs)}")
        return {one.name: self._array(one, given[one.name]) for one in inputs}

    def encoded(self, results: Sequence[Any]) -> bytes:
        if len(results) == 1:
            return self._dumps(results[0])
        return self._dumps(dict(zip(self._output_names, results)))

    def joined(self, feeds: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return {one.name: self._numpy.concatenate([feed[one.name] for feed in feeds]) for one in self.inputs}

    def takes(self) -> dict[str, Any]:
        def rows(one: Tensor) -> dict[str, Any]:
            item: dict[str, Any] = {"type": "number"} if "float" in one.dtype else _json_type(one.dtype)
            for size in reversed(one.shape):
                item = {"type": "array", "items": item, **_bounds(size)}
            return item

        example = {one.name: _zeros(one.shape, "" if one.dtype == "str" else 0) for one in self.inputs}
        if len(self.inputs) == 1:
            only = self.inputs[0]
            return {
                "type": "object",
                "properties": {"data": rows(only)},
                "required": ["data"],
                "example": {"data": example[only.name]},
            }
        parts = {one.name: rows(one) for one in self.inputs}
        return {"type": "object", "properties": parts, "required": list(parts), "example": example}

    def _array(self, one: Tensor, value: Any) -> Any:
        numpy = self._numpy
        try:
            array = numpy.array(value)
            fits = array.dtype.kind in _KINDS[one.dtype[0]] or not array.size
            if fits and array.dtype.kind == "f" and one.dtype[0] in "iu":
                fits = bool((array == numpy.trunc(array)).all())
            if not fits:  # numpy would make a number of a text and of nothing
                raise Misfit(f"{one.name!r} is not an array of {one.dtype}")
            cast = array.astype(one.dtype, copy=False)
            if one.dtype[0] in "iu" and not (cast == array).all():  # of 300 numpy makes a uint8 of 44, in silence
                raise Misfit(f"{one.name!r} has numbers that {one.dtype} does not hold")
            array = cast
        except (ValueError, TypeError, OverflowError) as error:
            raise Misfit(f"{one.name!r} is not an array of {one.dtype}: {error}") from error
        shape = one.shape
        if array.shape == (0,) and len(shape) > 1:
            array = array.reshape(0, *(size or 0 for size in shape[1:]))  # no rows
        if array.ndim == len(shape) - 1 and shape and shape[0] in (None, 1):
            array = array[numpy.newaxis]  # one row, sent by itself
        if array.ndim != len(shape) or any(w is not None and w != g for w, g in zip(shape, array.shape)):
            wanted = ["any" if size is None else size for size in shape]
            raise Misfit(f"{one.name!r} has the shape {list(array.shape)}, and {wanted} is taken")
        return array


def failed(request_id: str) -> Answer:
    tell_log(f"request {request_id} failed:\n{traceback.format_exc()}")
    return problem(500, "the model failed on this request: its log says why", request_id)


def _sidecar(path: Path) -> Optional[dict[str, Any]]:
    try:
        return dict(json.loads(path.with_name("onnx.json").read_bytes()))
    except (OSError, ValueError):
        return None


def _batches_by_rows(told: dict[str, Any]) -> bool:
    parts = [*told.get("inputs", ()), *told.get("outputs", ())]
    return bool(told.get("dynamic_batch")) and all(part.get("batch_axis") == 0 for part in parts)


def _providers(onnxruntime: Any) -> list[str]:
    there = onnxruntime.get_available_providers()
    return [name for name in ("CUDAExecutionProvider", "CPUExecutionProvider") if name in there]


def _tensor(one: Any) -> Tensor:
    if one.type not in _DTYPES:
        raise Unusable(f"{one.name!r} of the model is a {one.type}, which has no form in JSON here: write a script")
    shape = tuple(size if isinstance(size, int) and size > 0 else None for size in one.shape)
    return Tensor(one.name, _DTYPES[one.type], shape)


def _codec(numpy: Any) -> tuple[Callable[[bytes], Any], Callable[[Any], bytes]]:
    try:
        import orjson
    except ImportError:
        return json.loads, lambda value: json.dumps(value, default=lambda array: array.tolist()).encode()
    option = orjson.OPT_SERIALIZE_NUMPY

    def plain(array: Any) -> Any:
        return array.tolist()  # float16, text, and arrays that are not laid out in one piece

    return orjson.loads, lambda value: orjson.dumps(value, plain, option)


def _json_type(dtype: str) -> dict[str, Any]:
    return {"bool": {"type": "boolean"}, "str": {"type": "string"}}.get(dtype, {"type": "integer"})


def _bounds(size: Optional[int]) -> dict[str, Any]:
    return {} if size is None else {"minItems": size, "maxItems": size}


def _zeros(shape: tuple[Optional[int], ...], item: Any) -> Any:
    if not shape:
        return item
    return [_zeros(shape[1:], item) for _ in range(min(shape[0] or 1, 64))]


def threads_of(workers: int) -> int:
    """So that the workers together use what the machine has, and not each of them all of it."""
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, there // max(1, workers))
