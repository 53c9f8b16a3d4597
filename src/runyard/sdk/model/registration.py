"""Registration of models: the request and the upload of files."""

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

Files = Sequence[tuple[str, Path]]  # path in the model, local path


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
    """Return the body of a registration request without the files."""
    if not isinstance(model_name, str):
        raise WebserviceException(f"model_name must be text, got {model_name!r}")
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


def register_files(workspace: Workspace, files: Files, request: dict[str, Any]) -> dict[str, Any]:
    """Send the files one by one, then register them as a version.

    A yard on this machine reads the files from disk; one on another machine receives them as streams.
    """
    print_line(f"Registering model {request['name']}")
    upload_id = uuid.uuid4().hex
    route = f"/api/model-uploads/{upload_id}"
    for name, path in files:
        if "RUNYARD_YARD_ELSEWHERE" in os.environ:
            with open(path, "rb") as stream:
                workspace.connection.upload(f"{route}/{name}", stream)
        else:
            workspace.connection.post(route, {"name": name, "source": str(path.absolute())})
    # in a training script, the run is the origin of the model
    body = {"run_id": os.environ.get("RUNYARD_RUN_ID"), **request, "upload_id": upload_id}
    view: dict[str, Any] = workspace.connection.post("/api/models", body)
    return view


def local_files(model_path: Union[str, Path], child_paths: Any = None) -> list[tuple[str, Path]]:
    """Return the files to register: a file by its name, a folder as `model/…` if its path is `outputs/model`."""
    path = Path(model_path)
    if not path.exists():
        raise WebserviceException(
            f"no file or folder {str(model_path)!r} to register", hint=f"paths are relative to {Path.cwd()}"
        )
    base = path.resolve()
    if base.is_file():
        if child_paths:
            raise WebserviceException(f"child_paths requires a folder, but {str(model_path)!r} is a file")
        return [(path.name, path)]
    children = [base / str(child) for child in child_paths] if child_paths else [base]
    missing = [str(child) for child in children if not child.exists()]
    if missing:
        raise ModelPathNotFoundException(f"no {missing[0]!r} to register")
    outside = [str(child) for child in children if not child.resolve().is_relative_to(base)]
    if outside:
        raise WebserviceException(f"{outside[0]!r} in child_paths is not below {str(model_path)!r}")
    files = [
        (f"{base.name}/{file.relative_to(base).as_posix()}", file) for child in children for file in _walk(child, base)
    ]
    if not files:
        raise ModelPathNotFoundException(f"the folder {str(model_path)!r} has no files to register")
    return sorted(set(files))


def as_datasets(datasets: Any) -> list[dict[str, Any]]:
    """Convert ``[('training', dataset)]`` to JSON."""
    references = []
    for pair in datasets or []:
        try:
            scenario, dataset = pair
        except (TypeError, ValueError):
            raise UserErrorException(
                f"datasets must be pairs of a purpose and a dataset, got {pair!r}", hint="[('training', dataset)]"
            ) from None
        references.append({"scenario": str(scenario), **_dataset(dataset)})
    return references


def build_details(caller: str, sample_input: Any, sample_output: Any, resources: Any) -> dict[str, Any]:
    details: dict[str, Any] = {}
    if sample_input is not None:
        details["sample_input_dataset"] = _dataset(sample_input)
    if sample_output is not None:
        details["sample_output_dataset"] = _dataset(sample_output)
    if resources is not None:
        reason = "it is recorded; the resources of a service are set when it is deployed"
        warn_ignored(caller, "resource_configuration", resources, reason)
        settings = resources if isinstance(resources, dict) else vars(resources)
        details["resource_configuration"] = {str(k).lstrip("_"): v for k, v in settings.items() if _is_plain(v)}
    return details


def print_line(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _walk(child: Path, base: Path) -> Iterator[Path]:
    if child.is_file():
        yield child
        return
    for path in sorted(child.rglob("*")):
        if path.is_symlink() and not path.resolve().is_relative_to(base):
            log.warning("skipped %s: it is a link that leads out of the folder", path)
        elif path.is_file():
            yield path


def _dataset(dataset: Any) -> dict[str, Any]:
    reference = {name: getattr(dataset, name, None) for name in ("id", "name", "version")}
    if reference["id"] is None and reference["name"] is None:
        raise UserErrorException(
            f"{dataset!r} is not a dataset of this workspace", hint="Dataset.get_by_name(ws, name)"
        )
    return {name: value if value is None or isinstance(value, int) else str(value) for name, value in reference.items()}


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float, bool))
