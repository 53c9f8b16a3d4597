"""The exported model in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional

from runyard.errors import OnnxExportException
from runyard.onnx.packages import require

_TYPES = {"float": "float32", "double": "float64"}


class Session:
    """Runs an exported model on the CPU."""

    def __init__(self, path: Path) -> None:
        (runtime,) = require("onnxruntime", purpose="comparing an exported model")
        options = runtime.SessionOptions()
        options.log_severity_level = 3  # errors only; its warnings are about speed
        try:
            self._session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise OnnxExportException(
                f"ONNX Runtime rejects the exported model: {str(error)[:400]}", hint="try another opset"
            ) from error
        self.inputs = [_describe(tensor) for tensor in self._session.get_inputs()]
        self.outputs = [_describe(tensor) for tensor in self._session.get_outputs()]

    def feed(self, names: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
        """Assign values to the model's inputs by name if the names match, else in order.

        The exporter may have removed an input that the model does not use.
        """
        input_names = [tensor["name"] for tensor in self.inputs]
        by_name = dict(zip(names, values))
        if not set(input_names) <= set(by_name):
            by_name = dict(zip(input_names, values))
        return {name: by_name[name] for name in input_names}

    def run(self, names: Sequence[str], arrays: Sequence[Any]) -> list[Any]:
        outputs: list[Any] = self._session.run(None, self.feed(names, arrays))
        return outputs


def _describe(tensor: Any) -> dict[str, Any]:
    kind = tensor.type[len("tensor(") : -1]
    return {"name": tensor.name, "dtype": _TYPES.get(kind, kind), "shape": list(tensor.shape)}


def batch_axis(small: Any, large: Any, sizes: tuple[int, int]) -> Optional[int]:
    """Return the axis of an output that has the sizes of the two batches."""
    if len(small.shape) != len(large.shape):
        return None
    axes = [axis for axis, pair in enumerate(zip(small.shape, large.shape)) if pair == sizes]
    return axes[0] if len(axes) == 1 else None
