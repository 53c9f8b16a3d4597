"""Serves an ONNX model without a scoring script.

The request is ``{"data": …}`` or the rows themselves for a model with one input, ``{"name": …, …}`` for several inputs.
The response contains the rows of the output, or ``{"name": rows, …}`` for several outputs. Requires ONNX Runtime and
numpy; uses orjson if it is installed.
"""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Optional

from runyard.scoring.entry_script import CannotServe, log_traceback
from runyard.scoring.request_head import Head
from runyard.scoring.responses import Response, problem

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


# numpy kinds of a JSON array that are accepted, by the first letter of the input's type
_KINDS = {"f": "iuf", "i": "iuf", "u": "iuf", "b": "b", "s": "U"}


class InputMismatch(Exception):
    """The request does not match the model's inputs."""


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
            raise CannotServe(
                f"serving an ONNX model requires onnxruntime and numpy; {error.name} is not installed"
            ) from error
        self._numpy: Any = numpy
        self._loads, self._dumps = _codec(numpy)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        try:
            self._session: Any = onnxruntime.InferenceSession(str(path), options, providers=_providers(onnxruntime))
        except Exception as error:  # ONNX Runtime's errors have no common class
            traceback.print_exc()
            raise CannotServe(f"ONNX Runtime cannot load {path.name}: {error}") from error
        self.inputs = [_tensor(value) for value in self._session.get_inputs()]
        self.outputs = [_tensor(value) for value in self._session.get_outputs()]
        self._output_names = [tensor.name for tensor in self.outputs]
        tensors = (*self.inputs, *self.outputs)
        metadata = _sidecar(path)
        is_dynamic = bool(self.inputs) and all(tensor.shape and tensor.shape[0] is None for tensor in tensors)
        # a dynamic axis is not necessarily the batch axis: the export metadata is authoritative
        self.is_batchable = is_dynamic and (metadata is None or _batches_by_rows(metadata))

    def score(self, head: Head, body: bytes, request_id: str) -> Response:
        try:
            results = self.run(self.arrays(body))
            return Response(200, self.encoded(results))
        except InputMismatch as error:
            return problem(400, str(error), request_id)
        except Exception:  # noqa: BLE001  the edge: ONNX Runtime's own errors have no common class
            return failed(request_id)

    def run(self, feed: dict[str, Any]) -> list[Any]:
        results: list[Any] = self._session.run(self._output_names, feed)
        return results

    def arrays(self, body: bytes) -> dict[str, Any]:
        """The model's inputs from a request body. Raises InputMismatch."""
        try:
            data = self._loads(body)
        except (ValueError, RecursionError) as error:
            raise InputMismatch(f"the body is not JSON: {error}") from error
        inputs = self.inputs
        if len(inputs) == 1:
            tensor = inputs[0]
            if isinstance(data, dict):
                data = data.get("data", data.get(tensor.name, data))
            if isinstance(data, dict):
                raise InputMismatch(f"expected an object with 'data' or {tensor.name!r}")
            return {tensor.name: self._array(tensor, data)}
        if isinstance(data, dict) and isinstance(data.get("data"), dict):
            data = data["data"]
        if not isinstance(data, dict) or any(tensor.name not in data for tensor in inputs):
            raise InputMismatch(f"expected an object with {', '.join(repr(tensor.name) for tensor in inputs)}")
        return {tensor.name: self._array(tensor, data[tensor.name]) for tensor in inputs}

    def encoded(self, results: Sequence[Any]) -> bytes:
        if len(results) == 1:
            return self._dumps(results[0])
        return self._dumps(dict(zip(self._output_names, results)))

    def joined(self, feeds: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return {tensor.name: self._numpy.concatenate([feed[tensor.name] for feed in feeds]) for tensor in self.inputs}

    def input_schema(self) -> dict[str, Any]:
        def rows(tensor: Tensor) -> dict[str, Any]:
            item: dict[str, Any] = {"type": "number"} if "float" in tensor.dtype else _json_type(tensor.dtype)
            for size in reversed(tensor.shape):
                item = {"type": "array", "items": item, **_bounds(size)}
            return item

        example = {tensor.name: _zeros(tensor.shape, "" if tensor.dtype == "str" else 0) for tensor in self.inputs}
        if len(self.inputs) == 1:
            only = self.inputs[0]
            return {
                "type": "object",
                "properties": {"data": rows(only)},
                "required": ["data"],
                "example": {"data": example[only.name]},
            }
        parts = {tensor.name: rows(tensor) for tensor in self.inputs}
        return {"type": "object", "properties": parts, "required": list(parts), "example": example}

    def _array(self, tensor: Tensor, value: Any) -> Any:
        numpy = self._numpy
        try:
            array = numpy.array(value)
            fits = array.dtype.kind in _KINDS[tensor.dtype[0]] or not array.size
            if fits and array.dtype.kind == "f" and tensor.dtype[0] in "iu":
                fits = bool((array == numpy.trunc(array)).all())
            if not fits:  # numpy would convert text and null to numbers
                raise InputMismatch(f"{tensor.name!r}: expected an array of {tensor.dtype}")
            cast = array.astype(tensor.dtype, copy=False)
            if tensor.dtype[0] in "iu" and not (cast == array).all():  # numpy silently converts 300 to the uint8 44
                raise InputMismatch(f"{tensor.name!r}: values out of range for {tensor.dtype}")
            array = cast
        except (ValueError, TypeError, OverflowError) as error:
            raise InputMismatch(f"{tensor.name!r}: expected an array of {tensor.dtype}: {error}") from error
        shape = tensor.shape
        if array.shape == (0,) and len(shape) > 1:
            array = array.reshape(0, *(size or 0 for size in shape[1:]))  # no rows
        if array.ndim == len(shape) - 1 and shape and shape[0] in (None, 1):
            array = array[numpy.newaxis]  # a single row without the batch axis
        if array.ndim != len(shape) or any(w is not None and w != g for w, g in zip(shape, array.shape)):
            expected = ["any" if size is None else size for size in shape]
            raise InputMismatch(f"{tensor.name!r}: expected shape {expected}, got {list(array.shape)}")
        return array


def failed(request_id: str) -> Response:
    log_traceback(f"request {request_id} failed:\n{traceback.format_exc()}")
    return problem(500, "the model failed; see the service log", request_id)


def _sidecar(path: Path) -> Optional[dict[str, Any]]:
    try:
        return dict(json.loads(path.with_name("onnx.json").read_bytes()))
    except (OSError, ValueError):
        return None


def _batches_by_rows(metadata: dict[str, Any]) -> bool:
    parts = [*metadata.get("inputs", ()), *metadata.get("outputs", ())]
    return bool(metadata.get("dynamic_batch")) and all(part.get("batch_axis") == 0 for part in parts)


def _providers(onnxruntime: Any) -> list[str]:
    available = onnxruntime.get_available_providers()
    return [name for name in ("CUDAExecutionProvider", "CPUExecutionProvider") if name in available]


def _tensor(value: Any) -> Tensor:
    if value.type not in _DTYPES:
        raise CannotServe(f"the model's {value.name!r} is a {value.type}, which has no JSON form: use a scoring script")
    shape = tuple(size if isinstance(size, int) and size > 0 else None for size in value.shape)
    return Tensor(value.name, _DTYPES[value.type], shape)


def _codec(numpy: Any) -> tuple[Callable[[bytes], Any], Callable[[Any], bytes]]:
    try:
        import orjson
    except ImportError:
        return json.loads, lambda value: json.dumps(value, default=lambda array: array.tolist()).encode()
    option = orjson.OPT_SERIALIZE_NUMPY

    def plain(array: Any) -> Any:
        return array.tolist()  # float16, text and non-contiguous arrays

    return orjson.loads, lambda value: orjson.dumps(value, plain, option)


def _json_type(dtype: str) -> dict[str, Any]:
    return {"bool": {"type": "boolean"}, "str": {"type": "string"}}.get(dtype, {"type": "integer"})


def _bounds(size: Optional[int]) -> dict[str, Any]:
    return {} if size is None else {"minItems": size, "maxItems": size}


def _zeros(shape: tuple[Optional[int], ...], item: Any) -> Any:
    if not shape:
        return item
    return [_zeros(shape[1:], item) for _ in range(min(shape[0] or 1, 64))]


def threads_per_worker(workers: int) -> int:
    """Divide the CPU cores among the workers."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // max(1, workers))
