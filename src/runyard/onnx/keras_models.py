"""Keras models. Keras exports them itself; with TensorFlow it uses tf2onnx."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Optional

from runyard.errors import OnnxExportException
from runyard.onnx.inputs import Case, ExampleInputs
from runyard.onnx.packages import quiet, require

KERAS = "keras"


class KerasModel:
    """A Keras model."""

    is_half_precision = False

    def __init__(self, model: Any) -> None:
        (self._keras,) = require("keras", purpose="exporting a Keras model")
        self._model = model
        self.name = str(getattr(model, "name", type(model).__name__))
        self.forward: Any = None  # no parameter names: it is always called with one structure

    def prepare(self, inputs: ExampleInputs) -> ExampleInputs:
        if not inputs.by_name:
            return inputs
        names = [str(tensor.name).split(":")[0] for tensor in getattr(self._model, "inputs", None) or []]
        if sorted(names) != sorted(inputs.names):
            raise OnnxExportException(
                f"{self.name} has no inputs {', '.join(inputs.names)}", hint=f"its inputs: {', '.join(names)}"
            )
        order = [inputs.names.index(name) for name in names]
        cases = tuple(Case(c.name, tuple(c.values[index] for index in order), c.batch) for c in inputs.cases)
        return ExampleInputs(tuple(names), tuple(inputs.axes[index] for index in order), cases, by_name=False)

    def perturb(self, inputs: ExampleInputs) -> Optional[Case]:
        import numpy as np

        first = inputs.first
        arrays = self.arrays(first)
        if not any(value.dtype.kind == "f" for value in arrays):
            return None
        noise = np.random.default_rng(0)
        values = tuple(
            value + (noise.standard_normal(value.shape) * (0.1 * value.std() or 1.0)).astype(value.dtype)
            if value.dtype.kind == "f"
            else value
            for value in arrays
        )
        return Case(f"{first.name}, perturbed", values, first.batch)

    def call(self, inputs: ExampleInputs, case: Case) -> tuple[list[str], list[Any]]:
        values = self.arrays(case)
        result = self._model(values[0] if len(values) == 1 else values, training=False)
        if isinstance(result, Mapping):
            names, tensors = [str(key) for key in result], list(result.values())
        else:
            tensors = list(result) if isinstance(result, (list, tuple)) else [result]
            names = ["output"] if len(tensors) == 1 else [f"output_{number}" for number in range(len(tensors))]
        return names, [self._keras.ops.convert_to_numpy(tensor) for tensor in tensors]

    def arrays(self, case: Case) -> list[Any]:
        import numpy as np

        return [np.asarray(value) for value in case.values]

    def export(
        self, path: Path, inputs: ExampleInputs, exporter: str, opset: int | None, outputs: Sequence[str]
    ) -> None:
        if self._keras.backend.backend() == "tensorflow":
            require("tf2onnx", purpose="exporting a Keras model of TensorFlow")
        try:
            with quiet(), contextlib.redirect_stdout(io.StringIO()):
                self._model.export(str(path), format="onnx", verbose=False, opset_version=opset)
        except Exception as error:
            raise OnnxExportException(
                f"cannot export {self.name} with Keras: {type(error).__name__}: {str(error)[:400]}",
                hint="tf2onnx may not support one of its layers; another opset may support more of them",
                inner_exception=error,
            ) from error
        _name_outputs(path, outputs)


def _name_outputs(path: Path, names: Sequence[str]) -> None:
    """Rename the outputs, which Keras names `Identity:0` or by a number."""
    (onnx,) = require("onnx", purpose="naming the outputs")
    model = onnx.load(str(path))
    graph = model.graph
    used = {name for node in graph.node for name in (*node.input, *node.output)} | {item.name for item in graph.input}
    if len(graph.output) != len(names) or used & set(names):
        return
    for output, name in zip(graph.output, names):
        for node in graph.node:
            node.input[:] = [name if edge == output.name else edge for edge in node.input]
            node.output[:] = [name if edge == output.name else edge for edge in node.output]
        output.name = name
    onnx.save(model, str(path))
