"""Exports a model to ONNX, compares it with the original on ONNX Runtime, and registers it if they agree."""

from __future__ import annotations

import json
import logging
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional, Union

from runyard.errors import OnnxExportException, ParityFailed
from runyard.onnx.inputs import Batch, ExampleInputs, parse_example_inputs
from runyard.onnx.keras_models import KERAS, KerasModel
from runyard.onnx.model_loader import Source, load
from runyard.onnx.packages import require, version_of
from runyard.onnx.parity import Report, Tolerance, as_tolerance
from runyard.onnx.quantization import INT8, quantize
from runyard.onnx.reference_outputs import ReferenceOutputs
from runyard.onnx.sessions import Session
from runyard.onnx.torch_models import DYNAMO, TORCHSCRIPT
from runyard.sdk.model.model import Model
from runyard.sdk.model.registration import build_request, register_files

log = logging.getLogger("runyard")

FILE, SIDECAR = "model.onnx", "onnx.json"
_INT8_SHARE = 0.1


@dataclass(frozen=True)
class ExportOptions:
    """Options of an export."""

    exporter: str
    opset: Optional[int]
    tolerance: Tolerance
    quantize: Optional[str]
    quantize_share: float  # accepted deviation of a quantized model, as a share of the output's value range


@dataclass(frozen=True)
class Exported:
    """An exported model that is not registered."""

    folder: Path
    sidecar: dict[str, Any]

    @property
    def path(self) -> Path:
        return self.folder / FILE


def export(
    model: Any,
    example_inputs: Any,
    register_as: str | None = None,
    opset: int | None = None,
    dynamic_batch: Batch = True,
    exporter: str = DYNAMO,
    tolerance: Any = None,
    quantize: str | None = None,
    *,
    quantize_tolerance: float = _INT8_SHARE,
    workspace: Any = None,
    folder: Union[str, Path, None] = None,
    file: str | None = None,
    build: Callable[[], Any] | None = None,
    allow_pickle: bool = False,
    input_names: Sequence[str] | None = None,
    tags: dict[str, Any] | None = None,
    properties: dict[str, Any] | None = None,
    description: str | None = None,
) -> Union[Model, Exported]:
    """Export a model to ONNX and compare it with the original.

    Args:
        model: A torch module, a Keras model, a registered Model, a Run (with ``file``), or a path.
        example_inputs: One call (a tensor, a tuple, a dict by name) or a list of calls; all of them are compared.
        register_as: Name in the registry, where the export becomes the next version.
        opset: ONNX opset version; default: that of the exporter.
        dynamic_batch: True if the first axis of each input is the batch; an axis, a dict of axes, or False.
        exporter: ``'dynamo'`` or ``'torchscript'``, for torch modules.
        tolerance: Accepted deviation: a number, or (rtol, atol).
        quantize: ``'int8'`` to quantize the weights.
        quantize_tolerance: Accepted deviation of a quantized model, as a share of the output's value range.
        workspace: The workspace to register in; default: that of the model.
        folder: A new or empty folder to write the files to. Either this or ``register_as`` is required.
        file: File of a Run or of a registered Model to load.
        build: Creates the network, if the file contains only weights.
        allow_pickle: Load pickled models, which executes code.
        input_names: Names of positional inputs; default: the parameters of ``forward``.
        tags: Labels for the registry.
        properties: Labels for the registry that cannot be changed.
        description: Free text for the registry.

    Returns:
        The registered model, or the exported files.

    Raises:
        ParityFailed: The exported model computes different outputs. Nothing is written or registered.
        OnnxExportException: The model cannot be loaded or exported.
    """
    _check(register_as, folder, exporter, opset, quantize, quantize_tolerance)
    require("onnx", "onnxruntime", "numpy", purpose="exporting a model")
    source = load(model, file, build, allow_pickle)
    inputs = parse_example_inputs(example_inputs, source.model.forward, dynamic_batch, input_names)
    inputs = source.model.prepare(inputs)
    exporter = KERAS if isinstance(source.model, KerasModel) else exporter
    limits = as_tolerance(tolerance, source.model.is_half_precision)
    options = ExportOptions(exporter, opset, limits, quantize, quantize_tolerance)
    with tempfile.TemporaryDirectory(prefix="runyard-onnx-") as scratch:
        output = Path(scratch) / "output"
        output.mkdir()
        sidecar = _export_and_compare(source, inputs, options, output)
        (output / SIDECAR).write_text(json.dumps(sidecar, indent=1) + "\n", encoding="utf-8")
        if folder is not None:  # after the comparison, so that a failed one leaves no files
            shutil.copytree(output, folder, dirs_exist_ok=True)
        if register_as is not None:
            return _register(source, output, sidecar, register_as, workspace, tags, properties, description)
    return Exported(Path(str(folder)), sidecar)


def report(model: Union[Model, Exported]) -> dict[str, Any]:
    """Return inputs, outputs and the results of the comparison of an exported model."""
    if isinstance(model, Exported):
        return model.sidecar
    sidecar: dict[str, Any] = json.loads(
        model.workspace.connection.read(f"/api/models/{model.name}/versions/{model.version}/files/{SIDECAR}")
    )
    return sidecar


def _check(register_as: str | None, folder: Any, exporter: str, opset: Any, quantize: Any, share: float) -> None:
    if register_as is None and folder is None:
        raise OnnxExportException(
            "export needs register_as or folder",
            hint="register_as='digits' for the registry, folder='…' for files",
        )
    if exporter not in (DYNAMO, TORCHSCRIPT):
        raise OnnxExportException(f"exporter must be {DYNAMO!r} or {TORCHSCRIPT!r}, got {exporter!r}")
    if opset is not None and (isinstance(opset, bool) or not isinstance(opset, int) or opset < 7):
        raise OnnxExportException(f"opset must be a whole number of at least 7, got {opset!r}")
    if quantize not in (None, INT8):
        raise OnnxExportException(f"quantize must be {INT8!r} or None, got {quantize!r}")
    if not 0 < share < 1:
        raise OnnxExportException(f"quantize_tolerance must be between 0 and 1, got {share!r}")
    target = Path(folder) if folder is not None else None
    if target is not None and target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise OnnxExportException(f"{str(target)!r} exists already", hint="pass a new or an empty folder")


def _export_and_compare(source: Source, inputs: ExampleInputs, options: ExportOptions, folder: Path) -> dict[str, Any]:
    """Write the ONNX file and return the content of the sidecar. Raises ParityFailed."""
    original = source.model
    log.info("computing the outputs of %s", original.name)
    reference = ReferenceOutputs(original, inputs)
    log.info("exporting %s with %s", original.name, options.exporter)
    path = folder / FILE
    original.export(path, inputs, options.exporter, options.opset, reference.outputs)
    log.info("comparing on %s", ", ".join(reference.names))
    session = Session(path)
    parity = reference.compare_with(session, options.tolerance)
    if not parity.passed:
        raise _parity_error(original.name, options.exporter, parity, "the exported model")
    results: dict[str, Any] = {"quantized": None, "parity": parity.as_json()}
    if options.quantize is not None:
        results = _quantize_and_compare(original.name, reference, session, options.quantize_share, folder)
        results["parity_before"] = parity.as_json()
        session = Session(path)
    return {
        "format": 1,
        "file": FILE,
        "model": original.name,
        "exporter": options.exporter,
        "opset": _opset(path),
        "made_by": {name: version_of(name) for name in ("torch", "keras", "tf2onnx", "onnx", "onnxruntime")},
        **results,
        "size": sum(file.stat().st_size for file in folder.iterdir()),
        **reference.shapes(session),
    }


def _quantize_and_compare(
    name: str, reference: ReferenceOutputs, session: Session, share: float, folder: Path
) -> dict[str, Any]:
    """Replace the model by a quantized one if that passes the comparison. Raises ParityFailed."""
    log.info("quantizing to %s", INT8)
    with tempfile.TemporaryDirectory(prefix="runyard-onnx-") as scratch:
        quantized = Path(scratch) / FILE
        method = quantize(folder / FILE, quantized, reference.calibration(session))
        parity = reference.compare_with(Session(quantized), Tolerance(0.0, 0.0, share))
        if not parity.passed:
            raise _parity_error(name, f"{INT8} ({method})", parity, "the quantized model")
        size_before = sum(file.stat().st_size for file in folder.iterdir())
        for file in folder.iterdir():  # includes the separate weight files of a large model
            file.unlink()
        shutil.copyfile(quantized, folder / FILE)
    return {"quantized": INT8, "quantized_how": method, "size_before": size_before, "parity": parity.as_json()}


def _opset(path: Path) -> Optional[int]:
    (onnx,) = require("onnx", purpose="reading the exported model")
    opsets = onnx.load(str(path), load_external_data=False).opset_import
    return next((int(opset.version) for opset in opsets if opset.domain in ("", "ai.onnx")), None)


def _register(
    source: Source,
    folder: Path,
    sidecar: dict[str, Any],
    name: str,
    workspace: Any,
    tags: Any,
    properties: Any,
    description: str | None,
) -> Model:
    if workspace is None:
        workspace = source.workspace
    if workspace is None:
        from runyard.sdk.core.workspace import Workspace

        workspace = Workspace()
    facts = {key: sidecar[key] for key in ("exporter", "opset", "quantized") if sidecar[key] is not None}
    request = build_request(
        "onnx.export", name, tags, {**facts, **(properties or {})}, description, None, Model.Framework.ONNX,
        version_of("onnx"), None, None, None,
    )  # fmt: skip
    lineage = {"made_of": source.parent_id, **({"run_id": source.run_id} if source.run_id else {})}
    files = [(path.name, path) for path in sorted(folder.iterdir())]
    return Model(workspace, _view=register_files(workspace, files, {**request, **lineage}))


def _parity_error(name: str, method: str, parity: Report, subject: str) -> ParityFailed:
    other_exporter = {DYNAMO: TORCHSCRIPT, TORCHSCRIPT: DYNAMO}.get(method)
    hint = f"try exporter={other_exporter!r}, another opset, or" if other_exporter else "another opset may help, or"
    if parity.share:
        hint = "pass more example inputs for the calibration, use quantize=None, or"
    parameter = "quantize_tolerance" if parity.share else "tolerance"
    return ParityFailed(
        f"{subject} of {name} ({method}) differs from the original and was not registered: {parity.first_difference()}",
        hint=f"{hint} pass the {parameter}= that you accept; the error's report contains every input and output",
        report=parity.as_json(),
    )
