"""Local paths of registered models: part of a service, or downloaded from the registry."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from runyard.client.connection import Connection
from runyard.errors import ModelNotFoundException, WebserviceException
from runyard.posix import atomic_write, sha256

if TYPE_CHECKING:
    from runyard.sdk.core.workspace import Workspace

FOLDER = "azureml-models"

log = logging.getLogger("runyard")


def model_path(name: str, version: int | None, workspace: Workspace | None) -> str:
    """Return the path of a registered file or folder.

    In a run, or with a workspace, the model is downloaded from the registry to ``azureml-models/<name>/<version>``.
    Only a model that is not registered may be a file or folder of the project, which the log mentions. A service has
    its models in such a folder already.
    """
    if not isinstance(name, str) or not name:
        raise WebserviceException(f"model_name must be text, got {name!r}")
    if version is not None and (isinstance(version, bool) or not isinstance(version, int)):
        raise WebserviceException(f"version must be a whole number, got {version!r}")
    if workspace is None and "RUNYARD_RUN_ID" in os.environ and "AZUREML_MODEL_DIR" not in os.environ:
        from runyard.sdk.core.workspace import Workspace

        workspace = Workspace()
    if workspace is None:
        path = _local_path(name, version)
        if path is None:
            raise _not_found(name, version)
        return path
    try:
        return str(_fetch(workspace, name, version))
    except ModelNotFoundException:
        path = _local_path(name, version)
        if path is None:
            raise
        log.warning("no model %r is registered: using %s", name, Path(path).absolute())
        return path


def _local_path(name: str, version: int | None) -> str | None:
    for root in _model_roots():
        path = _version_path(root / name, version)
        if path is not None:
            return str(path)
    return name if version is None and Path(name).exists() else None


def download(connection: Connection, page: dict[str, Any], target_dir: str, exist_ok: bool) -> Path:
    model = page["model"]
    base = Path(target_dir)
    targets = {file["path"]: base / file["path"] for file in page["files"]}
    existing = [str(path) for path in targets.values() if path.exists()]
    if existing and not exist_ok:
        raise WebserviceException(
            f"{existing[0]} exists already",
            hint="download(target_dir, exist_ok=True), or --replace on the command line, replaces it",
        )
    route = f"/api/models/{quote(model['name'], safe='')}/versions/{model['version']}"
    for name, target in targets.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write.replace_file(target) as draft:
            connection.download(f"{route}/files/{quote(name)}", draft)
    return _registered_path(base, {name.split("/")[0] for name in targets})


def _model_roots() -> Iterator[Path]:
    """Yield the folder that a service names in its environment, and the one that older scripts start in."""
    model_dir = os.environ.get("AZUREML_MODEL_DIR")
    if model_dir:
        for folder in (Path(model_dir), *Path(model_dir).parents):
            if folder.name == FOLDER:
                yield folder
                break
    yield Path(FOLDER)


def _version_path(model_folder: Path, version: int | None) -> Path | None:
    if not model_folder.is_dir():
        return None
    numbers = sorted(int(entry.name) for entry in model_folder.iterdir() if entry.name.isdecimal())
    if version is None and numbers:
        version = numbers[-1]
    folder = model_folder / str(version)
    if not folder.is_dir():
        return None
    return _registered_path(folder, {entry.name for entry in folder.iterdir()})


def _registered_path(folder: Path, entries: set[str]) -> Path:
    """Return the registered file or folder; if several were registered, the folder that contains them."""
    return folder / next(iter(entries)) if len(entries) == 1 else folder


def _fetch(workspace: Workspace, name: str, version: int | None) -> Path:
    route = f"/api/models/{quote(name, safe='')}/versions/{'latest' if version is None else version}"
    try:
        page: dict[str, Any] = workspace.connection.get(route)
    except WebserviceException as error:
        raise ModelNotFoundException(error.message, hint=error.hint, inner_exception=error) from error
    target = Path(FOLDER) / name / str(page["model"]["version"])
    registered_path = _registered_path(target, {file["path"].split("/")[0] for file in page["files"]})
    if target.exists():
        if _has_files(target, page["files"]):
            return registered_path
        raise WebserviceException(
            f"{target} exists, and is not version {page['model']['version']} of the model {name!r} in the registry",
            hint="delete or rename the folder",
        )
    # another process of the same run uses the folder as soon as it exists, so it must appear complete
    with atomic_write.create_folder(target) as draft:
        download(workspace.connection, page, str(draft), exist_ok=True)
    return registered_path


def _has_files(folder: Path, files: list[dict[str, Any]]) -> bool:
    """Compare the names and digests of all files of the folder."""
    digests = {file["path"]: file["digest"] for file in files}
    paths = [path for path in folder.rglob("*") if path.is_file()]
    names = {path.relative_to(folder).as_posix() for path in paths}
    return names == set(digests) and all(sha256.of_file(folder / name) == digests[name] for name in names)


def _not_found(name: str, version: int | None) -> ModelNotFoundException:
    available = sorted(
        f"{model.name}:{number.name}"
        for root in _model_roots()
        if root.is_dir()
        for model in root.iterdir()
        if model.is_dir()
        for number in model.iterdir()
        if number.name.isdecimal()
    )
    model_id = name if version is None else f"{name}:{version}"
    return ModelNotFoundException(
        f"the model {model_id!r} is neither in {FOLDER} nor in {Path.cwd()}",
        hint=f"models here: {', '.join(available)}"
        if available
        else "a service has only the models that it was deployed with",
        model=name,
    )
