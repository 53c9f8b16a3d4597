"""Outputs of the original model for the example inputs, and comparisons with them."""

from __future__ import annotations

import contextlib
from typing import Any, Optional, Union

from runyard.errors import OnnxExportException, RunyardException
from runyard.onnx.inputs import Case, ExampleInputs, other_batch_sizes, resize
from runyard.onnx.keras_models import KerasModel
from runyard.onnx.parity import CaseParity, Report, Tolerance, compare
from runyard.onnx.sessions import Session, batch_axis
from runyard.onnx.torch_models import TorchModel

_TWO_SIZES = (2, 5)  # batch sizes: an output axis that has both is the batch axis


class ReferenceOutputs:
    """Computes the original's outputs for all example inputs, for other batch sizes and for perturbed values."""

    def __init__(self, original: Union[TorchModel, KerasModel], inputs: ExampleInputs) -> None:
        self._original, self._inputs = original, inputs
        self.outputs, first = self._call(inputs.first)
        self._cases: list[tuple[Case, list[Any]]] = [(inputs.first, first)]
        self._check_deterministic(first)
        for case in [*inputs.cases[1:], *other_batch_sizes(inputs)]:
            self._cases.append((case, self._call(case)[1]))
        perturbed = original.perturb(inputs)
        if perturbed is not None:
            with contextlib.suppress(Exception):  # the model may accept only certain values
                self._cases.append((perturbed, original.call(inputs, perturbed)[1]))

    @property
    def names(self) -> list[str]:
        return [case.name for case, _ in self._cases]

    def compare_with(self, session: Session, tolerance: Tolerance) -> Report:
        results = []
        for case, expected in self._cases:
            try:
                got = session.run(self._inputs.names, self._original.arrays(case))
            except RunyardException:
                raise
            except Exception as error:  # noqa: BLE001  ONNX Runtime does not export its error classes
                results.append(CaseParity(case.name, case.batch, problem=f"cannot run: {str(error)[:300]}"))
                continue
            results.append(compare(case.name, case.batch, self.outputs, expected, got, tolerance))
        return Report(tolerance.rtol, tolerance.atol, tolerance.share, results)

    def calibration(self, session: Session) -> list[dict[str, Any]]:
        """Return the example inputs in the form that ONNX Runtime expects."""
        return [session.feed(self._inputs.names, self._original.arrays(case)) for case in self._inputs.cases]

    def shapes(self, session: Session) -> dict[str, Any]:
        """Return inputs and outputs of the exported model, each with its batch axis."""
        examples = self._inputs
        axes = session.feed(examples.names, examples.axes)
        inputs = [{**tensor, "batch_axis": axes[tensor["name"]]} for tensor in session.inputs]
        output_axes: list[Optional[int]] = [None] * len(session.outputs)
        if examples.dynamic:
            cases = [resize(examples, examples.first, size) for size in _TWO_SIZES]
            small_and_large = [session.run(examples.names, self._original.arrays(case)) for case in cases]
            output_axes = [batch_axis(small, large, _TWO_SIZES) for small, large in zip(*small_and_large)]
        outputs = [{**tensor, "batch_axis": axis} for tensor, axis in zip(session.outputs, output_axes)]
        for tensor in [*inputs, *outputs]:
            if tensor["batch_axis"] is not None:
                tensor["shape"][tensor["batch_axis"]] = "batch"
        return {"dynamic_batch": examples.dynamic, "inputs": inputs, "outputs": outputs}

    def _call(self, case: Case) -> tuple[list[str], list[Any]]:
        try:
            return self._original.call(self._inputs, case)
        except RunyardException:
            raise
        except Exception as error:
            hint = "pass example_inputs as the model is called: a tensor, a tuple of tensors, or a dict by name"
            if not any(case is example for example in self._inputs.cases):  # tensors cannot be compared with ==
                hint = "dynamic_batch=False for a fixed batch size, or dynamic_batch={'x': 1} for another axis"
            raise OnnxExportException(
                f"the original {self._original.name} cannot compute {case.name}: {type(error).__name__}: "
                f"{str(error)[:300]}",
                hint=hint,
                inner_exception=error,
            ) from error

    def _check_deterministic(self, first: list[Any]) -> None:
        import numpy as np

        _, second = self._call(self._inputs.first)
        if not all(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc") for a, b in zip(first, second)):
            raise OnnxExportException(
                f"{self._original.name} returns different outputs for the same input, so it cannot be compared",
                hint="check for dropout or noise that is active in evaluation mode",
            )
