"""The exported model on ONNX Runtime: what it takes, what it gives, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional

from runyard.errors import OnnxExportException
from runyard.onnx.packages import needed

_TYPES = {"float": "float32", "double": "float64"}


class Session:
    def __init__(self, path: Path) -> None:
        (runtime,) = needed("onnxruntime", why="comparing an exported model")
        options = runtime.SessionOptions()
        options.log_severity_level = 3  # its warnings are about speed
        try:
            self._session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise OnnxExportException(
                f"ONNX Runtime does not take the exported model: {str(error)[:400]}", hint="try another opset"
            ) from error
        self.inputs = [_described(one) for one in self._session.get_inputs()]
        self.outputs = [_described(one) for one in self._session.get_outputs()]

    def feed(self, names: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
        """By name where they are the model's own, else in order; an input that the model never reads may be gone."""
        wanted = [one["name"] for one in self.inputs]
        given = dict(zip(names, values))
        if not set(wanted) <= set(given):
            given = dict(zip(wanted, values))
        return {name: given[name] for name in wanted}

    def run(self, names: Sequence[str], arrays: Sequence[Any]) -> list[Any]:
        found: list[Any] = self._session.run(None, self.feed(names, arrays))
        return found


def _described(one: Any) -> dict[str, Any]:
    kind = one.type[len("tensor(") : -1]
    return {"name": one.name, "dtype": _TYPES.get(kind, kind), "shape": list(one.shape)}


def batch_axis(small: Any, large: Any, sizes: tuple[int, int]) -> Optional[int]:
    """The axis of an output along which the two batches lie: the one that has their sizes."""
    if len(small.shape) != len(large.shape):
        return None
    found = [axis for axis, pair in enumerate(zip(small.shape, large.shape)) if pair == sizes]
    return found[0] if len(found) == 1 else None
