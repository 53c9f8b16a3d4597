"""What the original answers to what was recorded, and whether something else answers the same."""

from __future__ import annotations

import contextlib
from typing import Any, Optional, Union

from runyard.errors import OnnxExportException, RunyardException
from runyard.onnx.inputs import Case, Recorded, other_sizes, resized
from runyard.onnx.keras_models import KerasModel
from runyard.onnx.parity import CaseParity, Report, Tolerance, compare
from runyard.onnx.sessions import Session, batch_axis
from runyard.onnx.torch_models import TorchModel

_TWO_SIZES = (2, 5)  # of batches: what has both of them along an axis is a batch along it


class Trial:
    """The original is asked when this is made: for all that was recorded, and for batches of other sizes."""

    def __init__(self, original: Union[TorchModel, KerasModel], given: Recorded) -> None:
        self._original, self._given = original, given
        self.outputs, first = self._ask(given.first)
        self._asked: list[tuple[Case, list[Any]]] = [(given.first, first)]
        self._ask_again(first)
        for case in [*given.cases[1:], *other_sizes(given)]:
            self._asked.append((case, self._ask(case)[1]))
        varied = original.varied(given)
        if varied is not None:
            with contextlib.suppress(Exception):  # it takes only some values: those that were recorded are compared
                self._asked.append((varied, original.call(given, varied)[1]))

    @property
    def names(self) -> list[str]:
        return [case.name for case, _ in self._asked]

    def gate(self, session: Session, allowed: Tolerance) -> Report:
        found = []
        for case, expected in self._asked:
            try:
                got = session.run(self._given.names, self._original.arrays(case))
            except RunyardException:
                raise
            except Exception as error:  # noqa: BLE001  ONNX Runtime's errors are of classes that it does not export
                found.append(CaseParity(case.name, case.batch, problem=f"it cannot be run: {str(error)[:300]}"))
                continue
            found.append(compare(case.name, case.batch, self.outputs, expected, got, allowed))
        return Report(allowed.rtol, allowed.atol, allowed.share, found)

    def calibration(self, session: Session) -> list[dict[str, Any]]:
        """All that was recorded, as ONNX Runtime takes it."""
        return [session.feed(self._given.names, self._original.arrays(case)) for case in self._given.cases]

    def shapes(self, session: Session) -> dict[str, Any]:
        """Inputs and outputs as ONNX Runtime sees them, and along which axis of each the batch lies."""
        given = self._given
        axes = session.feed(given.names, given.axes)
        inputs = [{**one, "batch_axis": axes[one["name"]]} for one in session.inputs]
        found: list[Optional[int]] = [None] * len(session.outputs)
        if given.dynamic:
            cases = [resized(given, given.first, size) for size in _TWO_SIZES]
            pair = [session.run(given.names, self._original.arrays(case)) for case in cases]
            found = [batch_axis(small, large, _TWO_SIZES) for small, large in zip(*pair)]
        outputs = [{**one, "batch_axis": axis} for one, axis in zip(session.outputs, found)]
        for one in [*inputs, *outputs]:
            if one["batch_axis"] is not None:
                one["shape"][one["batch_axis"]] = "batch"
        return {"dynamic_batch": given.dynamic, "inputs": inputs, "outputs": outputs}

    def _ask(self, case: Case) -> tuple[list[str], list[Any]]:
        try:
            return self._original.call(self._given, case)
        except RunyardException:
            raise
        except Exception as error:
            hint = "example_inputs is what the model is called with: a tensor, a tuple of them, a dict by name"
            if not any(case is known for known in self._given.cases):  # tensors cannot be asked whether they are equal
                hint = "dynamic_batch=False for a model of one batch size, or dynamic_batch={'x': 1} for another axis"
            raise OnnxExportException(
                f"{self._original.called} itself cannot compute {case.name}: {type(error).__name__}: "
                f"{str(error)[:300]}",
                hint=hint,
                inner_exception=error,
            ) from error

    def _ask_again(self, first: list[Any]) -> None:
        import numpy as np

        _, again = self._ask(self._given.first)
        if not all(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc") for a, b in zip(first, again)):
            raise OnnxExportException(
                f"{self._original.called} answers differently when it is asked the same twice, so nothing can be "
                "compared",
                hint="is there dropout, or noise, that also works in evaluation mode?",
            )
