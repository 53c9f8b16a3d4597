"""Exporting: to a file, onto ONNX Runtime, against the original, and only then into the registry."""

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
from runyard.onnx.inputs import Batch, Recorded, recorded
from runyard.onnx.keras_models import KERAS, KerasModel
from runyard.onnx.model_loader import Source, load
from runyard.onnx.packages import needed, version_of
from runyard.onnx.parity import Report, Tolerance, as_tolerance
from runyard.onnx.quantization import INT8, quantize
from runyard.onnx.reference_outputs import Trial
from runyard.onnx.sessions import Session
from runyard.onnx.torch_models import DYNAMO, TORCHSCRIPT
from runyard.sdk.model.model import Model
from runyard.sdk.model.registration import build_request, register_files

log = logging.getLogger("runyard")

FILE, SIDECAR = "model.onnx", "onnx.json"
_INT8_SHARE = 0.1


@dataclass(frozen=True)
class Wish:
    """How it is to be exported, and what counts as the same."""

    exporter: str
    opset: Optional[int]
    allowed: Tolerance
    quantized: Optional[str]
    share: float  # of an output's spread: what a quantized model may be off by


@dataclass(frozen=True)
class Exported:
    """A model that was exported and not registered."""

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
    """The model as ONNX, compared with the original on the example inputs; one that differs raises ParityFailed.

    ``register_as`` makes it the next version of that name in the registry; ``folder`` keeps the files there as well
    (without either they would be nowhere). ``example_inputs`` is one call (a tensor, a tuple, a dict by name) or a
    list of recorded calls, all of which are compared.
    """
    share = quantize_tolerance
    _check(register_as, folder, exporter, opset, quantize, share)
    needed("onnx", "onnxruntime", "numpy", why="exporting a model")
    source = load(model, file, build, allow_pickle)
    allowed = as_tolerance(tolerance, source.model.half)
    given = recorded(example_inputs, source.model.forward, dynamic_batch, input_names)
    given = source.model.prepared(given)
    wish = Wish(KERAS if isinstance(source.model, KerasModel) else exporter, opset, allowed, quantize, share)
    with tempfile.TemporaryDirectory(prefix="runyard-onnx-") as scratch:
        made = Path(scratch) / "made"
        made.mkdir()
        sidecar = _made(source, given, wish, made)
        (made / SIDECAR).write_text(json.dumps(sidecar, indent=1) + "\n", encoding="utf-8")
        if folder is not None:  # only now: what differs leaves nothing behind
            shutil.copytree(made, folder, dirs_exist_ok=True)
        if register_as is not None:
            return _registered(source, made, sidecar, register_as, workspace, tags, properties, description)
    return Exported(Path(str(folder)), sidecar)


def report(model: Union[Model, Exported]) -> dict[str, Any]:
    """What is known of an exported model: inputs, outputs, and how the comparison went."""
    if isinstance(model, Exported):
        return model.sidecar
    found: dict[str, Any] = json.loads(
        model.workspace.connection.read(f"/api/models/{model.name}/versions/{model.version}/files/{SIDECAR}")
    )
    return found


def _check(register_as: str | None, folder: Any, exporter: str, opset: Any, quantized: Any, share: float) -> None:
    if register_as is None and folder is None:
        raise OnnxExportException(
            "export needs to know where to", hint="register_as='digits-onnx' for the registry, folder='…' for a folder"
        )
    if exporter not in (DYNAMO, TORCHSCRIPT):
        raise OnnxExportException(f"there is no exporter {exporter!r}", hint=f"{DYNAMO!r} or {TORCHSCRIPT!r}")
    if opset is not None and (isinstance(opset, bool) or not isinstance(opset, int) or opset < 7):
        raise OnnxExportException(f"opset must be a whole number from 7 on, got {opset!r}")
    if quantized not in (None, INT8):
        raise OnnxExportException(f"quantize must be {INT8!r} or None, got {quantized!r}")
    if not 0 < share < 1:
        raise OnnxExportException(
            f"quantize_tolerance is a share of the outputs' spread, between 0 and 1, not {share!r}"
        )
    there = Path(folder) if folder is not None else None
    if there is not None and there.exists() and (not there.is_dir() or any(there.iterdir())):
        raise OnnxExportException(f"{str(there)!r} is there already", hint="give a new or an empty folder")


def _made(source: Source, given: Recorded, wish: Wish, folder: Path) -> dict[str, Any]:
    """The file, gated; and what is to be known of it."""
    original = source.model
    log.info("asking %s for its own answers", original.called)
    trial = Trial(original, given)
    log.info("exporting %s by %s", original.called, wish.exporter)
    path = folder / FILE
    original.export(path, given, wish.exporter, wish.opset, trial.outputs)
    log.info("comparing on %s", ", ".join(trial.names))
    session = Session(path)
    gate = trial.gate(session, wish.allowed)
    if not gate.passed:
        raise _differs(original.called, wish.exporter, gate, "the exported model")
    about: dict[str, Any] = {"quantized": None, "parity": gate.as_json()}
    if wish.quantized is not None:
        about = {**_quantized(original.called, trial, session, wish, folder), "parity_before": gate.as_json()}
        session = Session(path)
    return {
        "format": 1,
        "file": FILE,
        "model": original.called,
        "exporter": wish.exporter,
        "opset": _opset(path),
        "made_by": {name: version_of(name) for name in ("torch", "keras", "tf2onnx", "onnx", "onnxruntime")},
        **about,
        "size": sum(file.stat().st_size for file in folder.iterdir()),
        **trial.shapes(session),
    }


def _quantized(called: str, trial: Trial, session: Session, wish: Wish, folder: Path) -> dict[str, Any]:
    """The small model takes the large one's place, if it passes the same gate."""
    log.info("quantizing to %s", INT8)
    with tempfile.TemporaryDirectory(prefix="runyard-onnx-") as scratch:
        small = Path(scratch) / FILE
        how = quantize(folder / FILE, small, trial.calibration(session))
        gate = trial.gate(Session(small), Tolerance(0.0, 0.0, wish.share))
        if not gate.passed:
            raise _differs(called, f"{INT8} ({how})", gate, "the quantized model")
        before = sum(file.stat().st_size for file in folder.iterdir())
        for file in folder.iterdir():  # also the weights that a large model has beside it
            file.unlink()
        shutil.copyfile(small, folder / FILE)
    return {"quantized": INT8, "quantized_how": how, "size_before": before, "parity": gate.as_json()}


def _opset(path: Path) -> Optional[int]:
    (onnx,) = needed("onnx", why="reading the exported model")
    sets = onnx.load(str(path), load_external_data=False).opset_import
    return next((int(one.version) for one in sets if one.domain in ("", "ai.onnx")), None)


def _registered(
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
    known = {name: sidecar[name] for name in ("exporter", "opset", "quantized") if sidecar[name] is not None}
    about = build_request(
        "onnx.export", name, tags, {**known, **(properties or {})}, description, None, Model.Framework.ONNX,
        version_of("onnx"), None, None, None,
    )  # fmt: skip
    lineage = {"made_of": source.made_of, **({"run_id": source.run_id} if source.run_id else {})}
    files = [(path.name, path) for path in sorted(folder.iterdir())]
    return Model(workspace, _view=register_files(workspace, files, {**about, **lineage}))


def _differs(called: str, how: str, gate: Report, what: str) -> ParityFailed:
    other = {DYNAMO: TORCHSCRIPT, TORCHSCRIPT: DYNAMO}.get(how)
    hint = f"try exporter={other!r}, another opset, or" if other else "another opset may help, or"
    if gate.share:
        hint = "record more inputs for it to learn the ranges from, keep quantize=None, or"
    named = "quantize_tolerance" if gate.share else "tolerance"
    return ParityFailed(
        f"{what} of {called} (by {how}) computes something else than the original, and was not registered: "
        f"{gate.where()}",
        hint=f"{hint} give the {named}= that you accept; the error's report has every input and output",
        report=gate.as_json(),
    )
