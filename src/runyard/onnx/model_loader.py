"""Loads a model from any of the accepted sources."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional, Union

from runyard.errors import OnnxExportException
from runyard.onnx.keras_models import KerasModel
from runyard.onnx.packages import require
from runyard.onnx.torch_models import TorchModel
from runyard.sdk.model.model import Model
from runyard.sdk.run.run import Run

_TORCH_FILES = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".tar")
_KERAS_FILES = (".keras", ".h5")


@dataclass(frozen=True)
class Source:
    model: Union[TorchModel, KerasModel]
    workspace: Any = None
    run_id: Optional[str] = None
    parent_id: Optional[str] = None  # id of the registered model that it was loaded from


def load(model: Any, file: str | None, build: Callable[[], Any] | None, allow_pickle: bool) -> Source:
    """Load a torch module, a Keras model, a registered :class:`Model`, a :class:`Run` with ``file``, or a path."""
    if isinstance(model, (Model, Run)):
        with tempfile.TemporaryDirectory(prefix="runyard-onnx-") as folder:
            path = _fetch(model, file, Path(folder))
            loaded = _from_file(path, build, allow_pickle)
        if isinstance(model, Model):
            return Source(loaded, model.workspace, model.run_id, model.id)
        return Source(loaded, model.experiment.workspace, model.id)
    if isinstance(model, (str, Path)):
        return Source(_from_file(Path(model), build, allow_pickle))
    return Source(_adapt(model))


def _adapt(model: Any) -> Union[TorchModel, KerasModel]:
    """Wrap a model object. Its class is recognized by name, so that no framework has to be imported."""
    kinds = {f"{kind.__module__}.{kind.__name__}" for kind in type(model).__mro__}
    if any(name.startswith(("keras.", "tf_keras.", "tensorflow.python.keras.")) for name in kinds):
        return KerasModel(model)
    if "torch.nn.modules.module.Module" in kinds:
        return TorchModel(model)
    roots = {name.split(".")[0] for name in kinds}
    if "tensorflow" in roots:
        raise OnnxExportException(
            f"cannot export a {type(model).__name__} of TensorFlow: only Keras models are supported",
            hint="put it into a keras.Model; or use tf2onnx yourself and Model.register(…, model_framework='Onnx')",
        )
    if "sklearn" in roots:
        raise OnnxExportException(
            f"cannot export a {type(model).__name__} of scikit-learn",
            hint="convert it with skl2onnx; then Model.register(…, model_framework='Onnx')",
        )
    raise OnnxExportException(
        f"cannot export a {type(model).__name__}",
        hint="pass a torch.nn.Module, a Keras model, a registered Model, a Run with file='outputs/model.pt', or a path",
    )


def _fetch(model: Union[Model, Run], file: str | None, folder: Path) -> Path:
    names = model.files() if isinstance(model, Model) else model.get_file_names()
    if file is None:
        loadable = [name for name in names if name.endswith(_TORCH_FILES + _KERAS_FILES)]
        if len(loadable) != 1:
            listing = ", ".join((loadable or names)[:10]) or "none"
            raise OnnxExportException(
                f"{model.id} has {'no file' if not loadable else 'several files'} to load a model from",
                hint=f"pass file='…'; its files: {listing}",
            )
        file = loadable[0]
    if file not in names:
        raise OnnxExportException(f"{model.id} has no file {file!r}", hint=f"its files: {', '.join(names[:10])}")
    if isinstance(model, Model):
        model.download(target_dir=str(folder))
        return folder / file
    model.download_file(file, str(folder / Path(file).name))
    return folder / Path(file).name


def _from_file(path: Path, build: Callable[[], Any] | None, allow_pickle: bool) -> Union[TorchModel, KerasModel]:
    if not path.exists():
        raise OnnxExportException(f"no file {str(path)!r}")
    if path.suffix in _KERAS_FILES:
        (keras,) = require("keras", purpose=f"loading {path.name}")
        return KerasModel(keras.saving.load_model(str(path)))
    (torch,) = require("torch", purpose=f"loading {path.name}")
    try:
        content = torch.load(str(path), map_location="cpu", weights_only=not allow_pickle)
    except Exception as error:
        raise OnnxExportException(
            f"{path.name} does not contain plain weights: {str(error).splitlines()[0][:200]}",
            hint="loading a pickled model executes code: pass allow_pickle=True if you trust it and its class is "
            "importable; or use torch.save(net.state_dict(), …) and build=Net",
        ) from error
    if isinstance(content, torch.nn.Module):
        return TorchModel(content)
    return TorchModel(_with_weights(path, content, build))


def _with_weights(path: Path, content: Any, build: Callable[[], Any] | None) -> Any:
    weights = content
    for key in ("state_dict", "model_state_dict", "model"):  # common keys in checkpoints
        if isinstance(weights, dict) and isinstance(weights.get(key), dict):
            weights = weights[key]
    if build is None:
        raise OnnxExportException(
            f"{path.name} contains only the weights of a model",
            hint="pass build=Net, which creates the network for them",
        )
    module = build()
    try:
        module.load_state_dict(weights)
    except (RuntimeError, AttributeError, TypeError) as error:
        raise OnnxExportException(
            f"the weights in {path.name} do not match {type(module).__name__}: {str(error)[:400]}",
            inner_exception=error,
        ) from error
    return module
