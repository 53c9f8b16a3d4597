"""How a model comes into the registry: what is said of it, and its files on their way to the yard."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from runyard.errors import ModelPathNotFoundException, UserErrorException, WebserviceException
from runyard.sdk.azureml.no_effect import warn_ignored
from runyard.sdk.core.labels import as_labels
from runyard.sdk.core.validation import log
from runyard.sdk.training.submit import user_name

if TYPE_CHECKING:
    from runyard.sdk.core.workspace import Workspace

Files = Sequence[tuple[str, Path]]  # the name in the model, and where it is now


def build_request(
    caller: str,
    model_name: Any,
    tags: Any,
    properties: Any,
    description: Any,
    datasets: Any,
    framework: Any,
    framework_version: Any,
    sample_input: Any,
    sample_output: Any,
    resources: Any,
) -> dict[str, Any]:
    """All of a request but its files."""
    if not isinstance(model_name, str):
        raise WebserviceException(f"model_name takes text, not {model_name!r}")
    return {
        "registration_id": uuid.uuid4().hex,
        "name": model_name,
        "tags": as_labels(tags, "tags"),
        "properties": as_labels(properties, "properties"),
        "description": description,
        "datasets": as_datasets(datasets),
        "framework": framework,
        "framework_version": None if framework_version is None else str(framework_version),
        "details": build_details(caller, sample_input, sample_output, resources),
        "registered_by": user_name(),
    }


def register_files(workspace: Workspace, files: Files, about: dict[str, Any]) -> dict[str, Any]:
    """Each file by itself: the yard of this machine reads it where it is, one elsewhere gets it as a stream. The
    version appears when all are there."""
    print_line(f"Registering model {about['name']}")
    place = f"/api/model-uploads/{uuid.uuid4().hex}"
    for name, path in files:
        if "RUNYARD_YARD_ELSEWHERE" in os.environ:
            with open(path, "rb") as stream:
                workspace.connection.upload(f"{place}/{name}", stream)
        else:
            workspace.connection.post(place, {"name": name, "source": str(path.absolute())})
    inside = os.environ.get("RUNYARD_RUN_ID")  # a training script registers what it made
    body = {"run_id": inside, **about, "upload_id": place.rpartition("/")[2]}
    view: dict[str, Any] = workspace.connection.post("/api/models", body)
    return view


def local_files(model_path: Union[str, Path], child_paths: Any = None) -> list[tuple[str, Path]]:
    """A file is itself; a folder brings its own name: `outputs/model` is `model/…`."""
    path = Path(model_path)
    if not path.exists():
        raise WebserviceException(
            f"there is no file or folder {str(model_path)!r} to register", hint=f"paths are relative to {Path.cwd()}"
        )
    base = path.resolve()
    if base.is_file():
        if child_paths:
            raise WebserviceException(f"child_paths choose from a folder, and {str(model_path)!r} is a file")
        return [(path.name, path)]
    chosen = [base / str(child) for child in child_paths] if child_paths else [base]
    lacking = [str(child) for child in chosen if not child.exists()]
    if lacking:
        raise ModelPathNotFoundException(f"there is no {lacking[0]!r} to register")
    outside = [str(child) for child in chosen if not child.resolve().is_relative_to(base)]
    if outside:
        raise WebserviceException(f"{outside[0]!r} in child_paths is not below {str(model_path)!r}")
    files = [(f"{base.name}/{file.relative_to(base).as_posix()}", file) for one in chosen for file in _below(one, base)]
    if not files:
        raise ModelPathNotFoundException(f"the folder {str(model_path)!r} has no files to register")
    return sorted(set(files))


def as_datasets(datasets: Any) -> list[dict[str, Any]]:
    """``[('training', dataset)]`` as it travels."""
    found = []
    for pair in datasets or []:
        try:
            scenario, dataset = pair
        except (TypeError, ValueError):
            raise UserErrorException(
                f"datasets takes pairs of what for and a dataset, not {pair!r}", hint="[('training', dataset)]"
            ) from None
        found.append({"scenario": str(scenario), **_dataset(dataset)})
    return found


def build_details(caller: str, sample_input: Any, sample_output: Any, resources: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if sample_input is not None:
        found["sample_input_dataset"] = _dataset(sample_input)
    if sample_output is not None:
        found["sample_output_dataset"] = _dataset(sample_output)
    if resources is not None:
        warn_ignored(caller, "resource_configuration", resources, "it is kept, and what a service gets is said when deploying")
        given = resources if isinstance(resources, dict) else vars(resources)
        found["resource_configuration"] = {str(k).lstrip("_"): v for k, v in given.items() if _is_plain(v)}
    return found


def print_line(text: str) -> None:
    """Scripts for the SDK v1 show this line."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _below(place: Path, base: Path) -> Iterator[Path]:
    if place.is_file():
        yield place
        return
    for path in sorted(place.rglob("*")):
        if path.is_symlink() and not path.resolve().is_relative_to(base):
            log.warning("%s was left out: it is a link that leads out of the folder", path)
        elif path.is_file():
            yield path


def _dataset(dataset: Any) -> dict[str, Any]:
    known = {name: getattr(dataset, name, None) for name in ("id", "name", "version")}
    if known["id"] is None and known["name"] is None:
        raise UserErrorException(
            f"{dataset!r} is not a dataset of this workspace", hint="Dataset.get_by_name(ws, name)"
        )
    return {name: value if value is None or isinstance(value, int) else str(value) for name, value in known.items()}


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float, bool))
