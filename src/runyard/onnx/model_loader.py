"""Whatever is given for a model, as something that can be called and exported."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional, Union

from runyard.errors import OnnxExportException
from runyard.onnx.keras_models import KerasModel
from runyard.onnx.packages import needed
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
    made_of: Optional[str] = None  # the id of a registered model


def load(given: Any, file: str | None, build: Callable[[], Any] | None, allow_pickle: bool) -> Source:
    """A module of torch, a model of Keras, a registered :class:`Model`, a :class:`Run` with ``file``, or a path."""
    if isinstance(given, (Model, Run)):
        with tempfile.TemporaryDirectory(prefix="runyard-onnx-") as folder:
            path = _brought(given, file, Path(folder))
            loaded = _from_file(path, build, allow_pickle)
        if isinstance(given, Model):
            return Source(loaded, given.workspace, given.run_id, given.id)
        return Source(loaded, given.experiment.workspace, given.id)
    if isinstance(given, (str, Path)):
        return Source(_from_file(Path(given), build, allow_pickle))
    return Source(_adapted(given))


def _adapted(given: Any) -> Union[TorchModel, KerasModel]:
    """By the names of its classes: nothing is imported that the caller did not import."""
    kinds = {f"{kind.__module__}.{kind.__name__}" for kind in type(given).__mro__}
    if any(name.startswith(("keras.", "tf_keras.", "tensorflow.python.keras.")) for name in kinds):
        return KerasModel(given)
    if "torch.nn.modules.module.Module" in kinds:
        return TorchModel(given)
    roots = {name.split(".")[0] for name in kinds}
    if "tensorflow" in roots:
        raise OnnxExportException(
            f"a {type(given).__name__} of TensorFlow is not exported here: tf2onnx takes Keras models for us",
            hint="put it into a keras.Model; or use tf2onnx yourself and Model.register(…, model_framework='Onnx')",
        )
    if "sklearn" in roots:
        raise OnnxExportException(
            f"a {type(given).__name__} of scikit-learn is not exported here",
            hint="skl2onnx makes ONNX of it; then Model.register(…, model_framework='Onnx')",
        )
    raise OnnxExportException(
        f"a {type(given).__name__} cannot be exported",
        hint="give a torch.nn.Module, a Keras model, a registered Model, a Run with file='outputs/model.pt', or a path",
    )


def _brought(given: Union[Model, Run], file: str | None, folder: Path) -> Path:
    names = given.files() if isinstance(given, Model) else given.get_file_names()
    if file is None:
        loadable = [name for name in names if name.endswith(_TORCH_FILES + _KERAS_FILES)]
        if len(loadable) != 1:
            shown = ", ".join((loadable or names)[:10]) or "none"
            raise OnnxExportException(
                f"{given.id} has {'no file' if not loadable else 'several files'} to load a model from",
                hint=f"file='…' says which one; its files: {shown}",
            )
        file = loadable[0]
    if file not in names:
        raise OnnxExportException(f"{given.id} has no file {file!r}", hint=f"its files: {', '.join(names[:10])}")
    if isinstance(given, Model):
        given.download(target_dir=str(folder))
        return folder / file
    given.download_file(file, str(folder / Path(file).name))
    return folder / Path(file).name


def _from_file(path: Path, build: Callable[[], Any] | None, allow_pickle: bool) -> Union[TorchModel, KerasModel]:
    if not path.exists():
        raise OnnxExportException(f"there is no file {str(path)!r}")
    if path.suffix in _KERAS_FILES:
        (keras,) = needed("keras", why=f"loading {path.name}")
        return KerasModel(keras.saving.load_model(str(path)))
    (torch,) = needed("torch", why=f"loading {path.name}")
    try:
        content = torch.load(str(path), map_location="cpu", weights_only=not allow_pickle)
    except Exception as error:
        raise OnnxExportException(
            f"{path.name} is not plain weights: {str(error).splitlines()[0][:200]}",
            hint="a whole pickled model runs code when it is loaded: allow_pickle=True if you trust it, with its class "
            "importable; or torch.save(net.state_dict(), …) and build=Net",
        ) from error
    if isinstance(content, torch.nn.Module):
        return TorchModel(content)
    return TorchModel(_with_weights(path, content, build))


def _with_weights(path: Path, content: Any, build: Callable[[], Any] | None) -> Any:
    weights = content
    for key in ("state_dict", "model_state_dict", "model"):  # how people wrap them into checkpoints
        if isinstance(weights, dict) and isinstance(weights.get(key), dict):
            weights = weights[key]
    if build is None:
        raise OnnxExportException(
            f"{path.name} has the weights of a model, and not the model",
            hint="build=Net makes the net to put them into",
        )
    module = build()
    try:
        module.load_state_dict(weights)
    except (RuntimeError, AttributeError, TypeError) as error:
        raise OnnxExportException(
            f"the weights of {path.name} are not those of {type(module).__name__}: {str(error)[:400]}",
            inner_exception=error,
        ) from error
    return module
