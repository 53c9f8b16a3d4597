"""PyTorch models and their two exporters."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Optional

from runyard.errors import OnnxExportException
from runyard.onnx.inputs import Case, ExampleInputs, resize
from runyard.onnx.packages import quiet, require

DYNAMO, TORCHSCRIPT = "dynamo", "torchscript"
_LINE = re.compile(r'File "([^"]+)", line (\d+), in forward')
_EXTERNAL_FROM_BYTES = 1_800_000_000  # a protobuf file is limited to 2 GB


class TorchModel:
    """A copy of a module on the CPU in evaluation mode."""

    def __init__(self, module: Any) -> None:
        (self._torch,) = require("torch", purpose="exporting a PyTorch model")
        self.name = type(module).__name__
        try:
            self._module = copy.deepcopy(module).cpu().eval()
        except (RuntimeError, TypeError, AttributeError):  # some modules cannot be copied: use the original
            self._module = module.cpu().eval()
        self.forward = self._module.forward
        half_types = (self._torch.float16, self._torch.bfloat16)
        self.is_half_precision = any(parameter.dtype in half_types for parameter in self._module.parameters())

    def prepare(self, inputs: ExampleInputs) -> ExampleInputs:
        """Convert arrays to tensors."""

        def tensor(value: Any) -> Any:
            return value.detach().cpu() if hasattr(value, "detach") else self._torch.as_tensor(value)

        cases = tuple(Case(case.name, tuple(map(tensor, case.values)), case.batch) for case in inputs.cases)
        return ExampleInputs(inputs.names, inputs.axes, cases, inputs.by_name)

    def perturb(self, inputs: ExampleInputs) -> Optional[Case]:
        """Add noise to the first example: zeros, a common example, hide errors in everything they multiply."""
        first = inputs.first
        if not any(value.is_floating_point() for value in first.values):
            return None
        noise = self._torch.Generator().manual_seed(0)

        def add_noise(value: Any) -> Any:
            if not value.is_floating_point():
                return value
            deviation = float(value.float().std()) if value.numel() > 1 else 0.0
            step = self._torch.randn(value.shape, generator=noise).to(value.dtype)
            return value + step * (0.1 * deviation if deviation > 0 else 1.0)

        return Case(f"{first.name}, perturbed", tuple(map(add_noise, first.values)), first.batch)

    def call(self, inputs: ExampleInputs, case: Case) -> tuple[list[str], list[Any]]:
        """Return names and arrays of the outputs."""
        with self._torch.no_grad():
            named = dict(zip(inputs.names, case.values))
            result = self._module(**named) if inputs.by_name else self._module(*case.values)
        outputs = list(_flatten(result, ""))
        if not outputs:
            raise OnnxExportException(f"{self.name} returns no tensor, but a {type(result).__name__}")
        names = [name or "output" for name, _ in outputs]
        return names, [_array(tensor) for _, tensor in outputs]

    def arrays(self, case: Case) -> list[Any]:
        return [_array(value) for value in case.values]

    def export(
        self, path: Path, inputs: ExampleInputs, exporter: str, opset: int | None, outputs: Sequence[str]
    ) -> None:
        # torch.export treats a size of 0 or 1 as fixed
        example = resize(inputs, inputs.first, 2) if inputs.dynamic and inputs.first.batch == 1 else inputs.first
        module = _by_name(self._torch, self._module, inputs.names) if inputs.by_name else self._module
        weight = sum(p.numel() * p.element_size() for p in self._module.parameters())
        common: dict[str, Any] = {
            "input_names": list(inputs.names),
            "output_names": list(outputs),
            "opset_version": opset,
            "external_data": weight > _EXTERNAL_FROM_BYTES,
        }
        try:
            with quiet():
                if exporter == DYNAMO:
                    require("onnx", "onnxscript", purpose="exporter='dynamo'")
                    shapes = self._shapes(inputs)
                    self._torch.onnx.export(
                        module, example.values, str(path), dynamo=True, dynamic_shapes=shapes, verbose=False, **common
                    )
                else:
                    axes = {n: {a: "batch"} for n, a in zip(inputs.names, inputs.axes) if a is not None}
                    self._torch.onnx.export(
                        module, example.values, str(path), dynamo=False, dynamic_axes=axes or None, **common
                    )
        except OnnxExportException:
            raise
        except Exception as error:
            raise _export_error(self.name, exporter, inputs, error) from error

    def _shapes(self, inputs: ExampleInputs) -> Any:
        if not inputs.dynamic:
            return None
        batch = self._torch.export.Dim("batch")
        shapes = tuple(None if axis is None else {axis: batch} for axis in inputs.axes)
        return (shapes,) if inputs.by_name else shapes  # keyword arguments are passed through *values


def _by_name(torch: Any, module: Any, names: tuple[str, ...]) -> Any:
    class ByName(torch.nn.Module):  # type: ignore[misc]
        """Passes positional inputs, which exporters require, to a model that is called with keyword arguments."""

        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, *values: Any) -> Any:
            return self.module(**dict(zip(names, values)))

    return ByName().eval()


def _flatten(result: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield the tensors inside tuples, lists and dicts, named by their position."""
    if result is None:
        return
    if isinstance(result, Mapping):
        for key, value in result.items():
            yield from _flatten(value, f"{name}_{key}" if name else str(key))
    elif isinstance(result, (tuple, list)):
        for number, value in enumerate(result):
            yield from _flatten(value, f"{name or 'output'}_{number}")
    elif hasattr(result, "detach"):
        yield name, result


def _array(tensor: Any) -> Any:
    copied = tensor.detach().cpu()
    return copied.float().numpy() if str(copied.dtype) == "torch.bfloat16" else copied.numpy()  # numpy has no bfloat16


def _export_error(name: str, exporter: str, inputs: ExampleInputs, error: Exception) -> OnnxExportException:
    cause: BaseException = error
    while cause.__cause__ is not None:  # the exporter wraps the actual error
        cause = cause.__cause__
    message = next((line.strip() for line in str(cause).splitlines() if line.strip()), "")
    location = _LINE.search(str(cause))
    if location is not None:
        message += f", at line {location[2]} of {Path(location[1]).name}"
    other = TORCHSCRIPT if exporter == DYNAMO else DYNAMO
    hint = f"try exporter={other!r}"
    if inputs.dynamic:
        hint += ", or dynamic_batch=False if the model requires a fixed batch size"
    return OnnxExportException(
        f"cannot export {name} with {exporter}: {type(cause).__name__}: {message[:400]}",
        hint=hint,
        inner_exception=error,
    )
