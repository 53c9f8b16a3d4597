"""Exporting: to a file, onto ONNX Runtime, against the original, and only then into the registry."""

from __future__ import annotations

import json
import logging
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional, Union

from runyard.errors import OnnxExportException, ParityFailed, RunyardException
from runyard.onnx.inputs import Batch, Case, Recorded, other_sizes, recorded
from runyard.onnx.keras_models import KERAS, KerasModel
from runyard.onnx.loading import Source, load
from runyard.onnx.packages import needed, version_of
from runyard.onnx.parity import CaseParity, Report, Tolerance, as_tolerance, compare
from runyard.onnx.quantizing import INT8, quantize
from runyard.onnx.sessions import Session, batch_axis
from runyard.onnx.torch_models import DYNAMO, TORCHSCRIPT
from runyard.sdk.model import Model
from runyard.sdk.model_registering import described, register_files

log = logging.getLogger("runyard")

FILE, SIDECAR = "model.onnx", "onnx.json"
_INT8_SHARE = 0.1


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
    _check(register_as, folder, exporter, opset, quantize, quantize_tolerance)
    needed("onnx", "onnxruntime", "numpy", why="exporting a model")
    source = load(model, file, build, allow_pickle)
    allowed = as_tolerance(tolerance, source.model.half)
    given = recorded(example_inputs, source.model.forward, dynamic_batch, input_names)
    given = source.model.prepared(given)
    with tempfile.TemporaryDirectory(prefix="runyard-onnx-") as scratch:
        target = _empty(Path(folder)) if folder is not None else Path(scratch) / "made"
        target.mkdir(parents=True, exist_ok=True)
        sidecar = _made(source, given, target, Path(scratch), exporter, opset, allowed, quantize, quantize_tolerance)
        (target / SIDECAR).write_text(json.dumps(sidecar, indent=1) + "\n", encoding="utf-8")
        if register_as is None:
            return Exported(target, sidecar)
        return _registered(source, target, sidecar, register_as, workspace, tags, properties, description)


def report(model: Union[Model, Exported]) -> dict[str, Any]:
    """What is known of an exported model: inputs, outputs, and how the comparison went."""
    if isinstance(model, Exported):
        return model.sidecar
    found: dict[str, Any] = json.loads(
        model.workspace.connection.read(f"/api/models/{model.name}/versions/{model.version}/files/{SIDECAR}")
    )
    return found


def _check(
    register_as: str | None, folder: Any, exporter: str, opset: Any, quantized: Any, quantize_tolerance: float
) -> None:
    if register_as is None and folder is None:
        raise OnnxExportException(
            "export needs to know where to", hint="register_as='digits-onnx' for the registry, folder='…' for a folder"
        )
    if exporter not in (DYNAMO, TORCHSCRIPT):
        raise OnnxExportException(f"there is no exporter {exporter!r}", hint=f"{DYNAMO!r} or {TORCHSCRIPT!r}")
    if opset is not None and (isinstance(opset, bool) or not isinstance(opset, int) or opset < 7):
        raise OnnxExportException(f"opset takes a whole number from 7 on, not {opset!r}")
    if quantized not in (None, INT8):
        raise OnnxExportException(f"quantize takes {INT8!r} or None, not {quantized!r}")
    if not 0 < quantize_tolerance < 1:
        raise OnnxExportException(
            f"quantize_tolerance is a share of the outputs' spread, between 0 and 1, not {quantize_tolerance!r}"
        )


def _empty(folder: Path) -> Path:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OnnxExportException(f"{str(folder)!r} is there already", hint="give a new or an empty folder")
    return folder


def _made(
    source: Source,
    given: Recorded,
    target: Path,
    scratch: Path,
    exporter: str,
    opset: int | None,
    allowed: Tolerance,
    quantized: str | None,
    share: float,
) -> dict[str, Any]:
    """The file, gated; and what is to be known of it."""
    original = source.model
    exporter = KERAS if isinstance(original, KerasModel) else exporter
    log.info("asking %s for its own answers", original.called)
    cases, answers, names = _answers(source, given)
    made = target / FILE
    log.info("exporting %s by %s", original.called, exporter)
    original.export(made, given, exporter, opset, names)
    log.info("comparing on %s", ", ".join(case.name for case in cases))
    session = Session(made)
    gate = _gate(source, given, session, cases, answers, names, allowed)
    if not gate.passed:
        raise _differs(original.called, exporter, gate, "the exported model")
    about: dict[str, Any] = {"quantized": None, "parity": gate.as_json()}
    if quantized is not None:
        about = _quantized(source, given, target, scratch, session, cases, answers, names, gate, share)
        session = Session(made)
    return {
        "format": 1,
        "file": FILE,
        "model": original.called,
        "exporter": exporter,
        "opset": _opset(made),
        "made_by": {name: version_of(name) for name in ("torch", "keras", "tf2onnx", "onnx", "onnxruntime")},
        **about,
        "size": made.stat().st_size,
        **_shapes(source, given, session),
    }


def _answers(source: Source, given: Recorded) -> tuple[list[Case], list[list[Any]], list[str]]:
    """What the original says to each input, also to batches of other sizes; asked twice, it must say the same."""
    import numpy as np

    names, first = source.model.call(given, given.first)
    _, again = source.model.call(given, given.first)
    if not all(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc") for a, b in zip(first, again)):
        raise OnnxExportException(
            f"{source.model.called} answers differently when it is asked the same twice, so nothing can be compared",
            hint="is there dropout, or noise, that also works in evaluation mode?",
        )
    cases = [*given.cases]
    answers = [first, *(source.model.call(given, case)[1] for case in given.cases[1:])]
    varied = source.model.varied(given)
    for case in [*other_sizes(given), *([varied] if varied is not None else [])]:
        try:
            answers.append(source.model.call(given, case)[1])
        except Exception as error:
            if case is varied:
                continue  # it takes only some values: those that were recorded are compared
            raise OnnxExportException(
                f"{source.model.called} itself cannot compute {case.name}: {type(error).__name__}: {str(error)[:300]}",
                hint="dynamic_batch=False for a model of one batch size, or dynamic_batch={'x': 1} for another axis",
            ) from error
        cases.append(case)
    return cases, answers, names


def _gate(
    source: Source,
    given: Recorded,
    session: Session,
    cases: Sequence[Case],
    answers: Sequence[Sequence[Any]],
    names: Sequence[str],
    allowed: Tolerance,
) -> Report:
    found = []
    for case, expected in zip(cases, answers):
        try:
            got = session.run(given.names, source.model.arrays(case))
        except RunyardException:
            raise
        except Exception as error:  # noqa: BLE001  ONNX Runtime's errors are of classes that it does not export
            found.append(CaseParity(case.name, case.batch, problem=f"it cannot be run: {str(error)[:300]}"))
            continue
        found.append(compare(case.name, case.batch, names, expected, got, allowed))
    return Report(allowed.rtol, allowed.atol, allowed.share, found)


def _quantized(
    source: Source,
    given: Recorded,
    target: Path,
    scratch: Path,
    session: Session,
    cases: Sequence[Case],
    answers: Sequence[Sequence[Any]],
    names: Sequence[str],
    before: Report,
    share: float,
) -> dict[str, Any]:
    """The small model takes the large one's place, if it passes the same gate."""
    small, large = scratch / "int8.onnx", target / FILE
    wanted = [one["name"] for one in session.inputs]
    calibration = [dict(zip(wanted, source.model.arrays(case))) for case in given.cases]
    log.info("quantizing to int8")
    how = quantize(large, small, calibration)
    gate = _gate(source, given, Session(small), cases, answers, names, Tolerance(0.0, 0.0, share))
    if not gate.passed:
        raise _differs(source.model.called, f"int8 ({how})", gate, "the quantized model")
    size = large.stat().st_size
    large.write_bytes(small.read_bytes())
    return {
        "quantized": INT8,
        "quantized_how": how,
        "size_before": size,
        "parity": gate.as_json(),
        "parity_before": before.as_json(),
    }


def _shapes(source: Source, given: Recorded, session: Session) -> dict[str, Any]:
    """Inputs and outputs as ONNX Runtime sees them, and along which axis of each the batch lies."""
    axes = dict(zip(given.names, given.axes))
    by_place = list(given.axes)
    inputs = [
        {**one, "batch_axis": axes.get(one["name"], by_place[place] if place < len(by_place) else None)}
        for place, one in enumerate(session.inputs)
    ]
    found: list[Optional[int]] = [None] * len(session.outputs)
    if given.dynamic:
        from runyard.onnx.inputs import resized

        sizes = (2, 5)
        pair = [session.run(given.names, source.model.arrays(resized(given, given.first, size))) for size in sizes]
        found = [batch_axis(small, large, sizes) for small, large in zip(*pair)]
    outputs = [{**one, "batch_axis": axis} for one, axis in zip(session.outputs, found)]
    for one in [*inputs, *outputs]:
        if one["batch_axis"] is not None:
            one["shape"][one["batch_axis"]] = "batch"
    return {"dynamic_batch": given.dynamic, "inputs": inputs, "outputs": outputs}


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
        from runyard.sdk.workspace import Workspace

        workspace = Workspace()
    known = {name: sidecar[name] for name in ("exporter", "opset", "quantized") if sidecar[name] is not None}
    about = described(
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
