"""PyTorch's models: called as they are, and exported by either of its exporters."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Optional

from runyard.errors import OnnxExportException
from runyard.onnx.inputs import Case, Recorded, resized
from runyard.onnx.packages import needed, quiet

DYNAMO, TORCHSCRIPT = "dynamo", "torchscript"
_LINE = re.compile(r'File "([^"]+)", line (\d+), in forward')
_EXTERNAL_FROM_BYTES = 1_800_000_000  # one file of protobuf holds two gigabytes


class TorchModel:
    """A copy on the CPU, in evaluation mode: what is compared is what will be served."""

    framework = "PyTorch"

    def __init__(self, module: Any) -> None:
        (self._torch,) = needed("torch", why="exporting a PyTorch model")
        self.called = type(module).__name__
        try:
            self._module = copy.deepcopy(module).cpu().eval()
        except (RuntimeError, TypeError, AttributeError):  # some hold what cannot be copied: the model itself, then
            self._module = module.cpu().eval()
        self.forward = self._module.forward
        self.half = any(p.dtype in (self._torch.float16, self._torch.bfloat16) for p in self._module.parameters())

    def prepared(self, given: Recorded) -> Recorded:
        """Arrays become tensors."""

        def tensor(value: Any) -> Any:
            return value.detach().cpu() if hasattr(value, "detach") else self._torch.as_tensor(value)

        cases = tuple(Case(case.name, tuple(map(tensor, case.values)), case.batch) for case in given.cases)
        return Recorded(given.names, given.axes, cases, given.by_name)

    def varied(self, given: Recorded) -> Optional[Case]:
        """The first input, moved a little: zeros, which many record, hide whatever is multiplied by them."""
        first = given.first
        if not any(value.is_floating_point() for value in first.values):
            return None
        noise = self._torch.Generator().manual_seed(0)

        def moved(value: Any) -> Any:
            if not value.is_floating_point():
                return value
            spread = float(value.float().std()) if value.numel() > 1 else 0.0
            step = self._torch.randn(value.shape, generator=noise).to(value.dtype)
            return value + step * (0.1 * spread if spread > 0 else 1.0)

        return Case(f"{first.name}, varied", tuple(map(moved, first.values)), first.batch)

    def call(self, given: Recorded, case: Case) -> tuple[list[str], list[Any]]:
        """Names and arrays of what it answers."""
        with self._torch.no_grad():
            answer = self._answer(given, case)
        named = list(_flat(answer, ""))
        if not named:
            raise OnnxExportException(f"{self.called} answers with no tensor, but with {type(answer).__name__}")
        names = [name or "output" for name, _ in named]
        return names, [_array(tensor) for _, tensor in named]

    def arrays(self, case: Case) -> list[Any]:
        return [_array(value) for value in case.values]

    def export(self, path: Path, given: Recorded, exporter: str, opset: int | None, outputs: Sequence[str]) -> None:
        # torch.export takes a size of 0 or 1 for a fixed one
        example = resized(given, given.first, 2) if given.dynamic and given.first.batch == 1 else given.first
        module = _by_name(self._torch, self._module, given.names) if given.by_name else self._module
        weight = sum(p.numel() * p.element_size() for p in self._module.parameters())
        common: dict[str, Any] = {
            "input_names": list(given.names),
            "output_names": list(outputs),
            "opset_version": opset,
            "external_data": weight > _EXTERNAL_FROM_BYTES,
        }
        try:
            with quiet():
                if exporter == DYNAMO:
                    needed("onnx", "onnxscript", why="exporter='dynamo'")
                    shapes = self._shapes(given)
                    self._torch.onnx.export(
                        module, example.values, str(path), dynamo=True, dynamic_shapes=shapes, verbose=False, **common
                    )
                else:
                    axes = {n: {a: "batch"} for n, a in zip(given.names, given.axes) if a is not None}
                    self._torch.onnx.export(
                        module, example.values, str(path), dynamo=False, dynamic_axes=axes or None, **common
                    )
        except OnnxExportException:
            raise
        except Exception as error:
            raise _refused(self.called, exporter, given, error) from error

    def _answer(self, given: Recorded, case: Case) -> Any:
        if given.by_name:
            return self._module(**dict(zip(given.names, case.values)))
        return self._module(*case.values)

    def _shapes(self, given: Recorded) -> Any:
        if not given.dynamic:
            return None
        batch = self._torch.export.Dim("batch")
        shapes = tuple(None if axis is None else {axis: batch} for axis in given.axes)
        return (shapes,) if given.by_name else shapes  # what is given by name goes through *values


def _by_name(torch: Any, module: Any, names: tuple[str, ...]) -> Any:
    class ByName(torch.nn.Module):  # type: ignore[misc]
        """Exporters take inputs in order; a model that takes them by name gets them so."""

        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, *values: Any) -> Any:
            return self.module(**dict(zip(names, values)))

    return ByName().eval()


def _flat(answer: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Tensors inside of tuples, lists and dicts, with names made of where they are."""
    if answer is None:
        return
    if isinstance(answer, Mapping):
        for key, value in answer.items():
            yield from _flat(value, f"{name}_{key}" if name else str(key))
    elif isinstance(answer, (tuple, list)):
        for number, value in enumerate(answer):
            yield from _flat(value, f"{name or 'output'}_{number}")
    elif hasattr(answer, "detach"):
        yield name, answer


def _array(tensor: Any) -> Any:
    found = tensor.detach().cpu()
    return found.float().numpy() if str(found.dtype) == "torch.bfloat16" else found.numpy()  # numpy has no bfloat16


def _refused(called: str, exporter: str, given: Recorded, error: Exception) -> OnnxExportException:
    cause: BaseException = error
    while cause.__cause__ is not None:  # the exporter's own words are about itself
        cause = cause.__cause__
    said = next((line.strip() for line in str(cause).splitlines() if line.strip()), "")
    place = _LINE.search(str(cause))
    if place is not None:
        said += f", at line {place[2]} of {Path(place[1]).name}"
    other = TORCHSCRIPT if exporter == DYNAMO else DYNAMO
    hint = f"try exporter={other!r}"
    if given.dynamic:
        hint += ", or dynamic_batch=False if the model only takes batches of one size"
    return OnnxExportException(
        f"{called} could not be exported by {exporter}: {type(cause).__name__}: {said[:400]}",
        hint=hint,
        inner_exception=error,
    )
