"""Keras' models: called as they are, and exported by Keras itself, which uses tf2onnx for TensorFlow."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Optional

from runyard.errors import OnnxExportException
from runyard.onnx.inputs import Case, Recorded
from runyard.onnx.packages import needed, quiet

KERAS = "keras"


class KerasModel:
    framework = "TfKeras"
    half = False

    def __init__(self, model: Any) -> None:
        (self._keras,) = needed("keras", why="exporting a Keras model")
        self._model = model
        self.called = str(getattr(model, "name", type(model).__name__))
        self.forward: Any = None  # its call takes one structure, whatever the inputs are

    def prepared(self, given: Recorded) -> Recorded:
        if not given.by_name:
            return given
        wanted = [str(one.name).split(":")[0] for one in getattr(self._model, "inputs", None) or []]
        if sorted(wanted) != sorted(given.names):
            raise OnnxExportException(
                f"the inputs {', '.join(given.names)} are not those of {self.called}", hint=f"it takes: {wanted}"
            )
        order = [given.names.index(name) for name in wanted]
        cases = tuple(Case(c.name, tuple(c.values[place] for place in order), c.batch) for c in given.cases)
        return Recorded(tuple(wanted), tuple(given.axes[place] for place in order), cases, by_name=False)

    def varied(self, given: Recorded) -> Optional[Case]:
        import numpy as np

        first = given.first
        arrays = self.arrays(first)
        if not any(value.dtype.kind == "f" for value in arrays):
            return None
        noise = np.random.default_rng(0)
        moved = tuple(
            value + (noise.standard_normal(value.shape) * (0.1 * value.std() or 1.0)).astype(value.dtype)
            if value.dtype.kind == "f"
            else value
            for value in arrays
        )
        return Case(f"{first.name}, varied", moved, first.batch)

    def call(self, given: Recorded, case: Case) -> tuple[list[str], list[Any]]:
        values = self.arrays(case)
        answer = self._model(values[0] if len(values) == 1 else values, training=False)
        if isinstance(answer, Mapping):
            names, tensors = [str(key) for key in answer], list(answer.values())
        else:
            tensors = list(answer) if isinstance(answer, (list, tuple)) else [answer]
            names = ["output"] if len(tensors) == 1 else [f"output_{number}" for number in range(len(tensors))]
        return names, [self._keras.ops.convert_to_numpy(tensor) for tensor in tensors]

    def arrays(self, case: Case) -> list[Any]:
        import numpy as np

        return [np.asarray(value) for value in case.values]

    def export(self, path: Path, given: Recorded, exporter: str, opset: int | None, outputs: Sequence[str]) -> None:
        if self._keras.backend.backend() == "tensorflow":
            needed("tf2onnx", why="exporting a Keras model of TensorFlow")
        try:
            with quiet(), contextlib.redirect_stdout(io.StringIO()):
                self._model.export(str(path), format="onnx", verbose=False, opset_version=opset)
        except Exception as error:
            raise OnnxExportException(
                f"{self.called} could not be exported by Keras: {type(error).__name__}: {str(error)[:400]}",
                hint="Keras exports models whose layers tf2onnx knows; another opset may know more of them",
                inner_exception=error,
            ) from error
        _name_outputs(path, outputs)


def _name_outputs(path: Path, names: Sequence[str]) -> None:
    """What Keras calls its outputs is `Identity:0`, or a number."""
    (onnx,) = needed("onnx", why="naming the outputs")
    model = onnx.load(str(path))
    graph = model.graph
    taken = {name for node in graph.node for name in (*node.input, *node.output)} | {one.name for one in graph.input}
    if len(graph.output) != len(names) or taken & set(names):
        return
    for output, name in zip(graph.output, names):
        for node in graph.node:
            node.input[:] = [name if one == output.name else one for one in node.input]
            node.output[:] = [name if one == output.name else one for one in node.output]
        output.name = name
    onnx.save(model, str(path))
