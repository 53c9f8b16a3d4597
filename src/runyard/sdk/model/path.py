"""Where a model is: beside a scoring script, or brought from the registry."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runyard.client.connection import Connection
from runyard.errors import ModelNotFoundException, WebserviceException

if TYPE_CHECKING:
    from runyard.sdk.core.workspace import Workspace

FOLDER = "azureml-models"


def model_path(name: str, version: int | None, workspace: Workspace | None) -> str:
    """``azureml-models/<name>/<version>/<what was registered>``, of the latest version that is there.

    Else a path of that name; else, in a run or with a workspace, the registry is asked and the model downloaded.
    """
    if not isinstance(name, str) or not name:
        raise WebserviceException(f"model_name takes text, not {name!r}")
    if version is not None and (isinstance(version, bool) or not isinstance(version, int)):
        raise WebserviceException(f"version takes a whole number, not {version!r}")
    for top in _tops():
        found = _in_folder(top / name, version)
        if found is not None:
            return str(found)
    if Path(name).exists():
        return name
    if workspace is None and "RUNYARD_RUN_ID" in os.environ:
        from runyard.sdk.core.workspace import Workspace

        workspace = Workspace()
    if workspace is None:
        raise _not_here(name, version)
    return str(_brought(workspace, name, version))


def download(connection: Connection, page: dict[str, Any], target_dir: str, exist_ok: bool) -> Path:
    model = page["model"]
    base = Path(target_dir)
    targets = {file["path"]: base / file["path"] for file in page["files"]}
    there = [str(path) for path in targets.values() if path.exists()]
    if there and not exist_ok:
        raise WebserviceException(
            f"{there[0]} exists already",
            hint="download(target_dir, exist_ok=True), or --replace on the command line, replaces it",
        )
    for name, target in targets.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{os.urandom(8).hex()}.part")  # a download that breaks off leaves no half file
        try:
            connection.download(f"/api/models/{model['name']}/versions/{model['version']}/files/{name}", part)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    return _single(base, {name.split("/")[0] for name in targets})


def _tops() -> Iterator[Path]:
    """A service says where its models are; older scripts start in the folder that has them."""
    given = os.environ.get("AZUREML_MODEL_DIR")
    if given:
        for folder in (Path(given), *Path(given).parents):
            if folder.name == FOLDER:
                yield folder
                break
    yield Path(FOLDER)


def _in_folder(place: Path, version: int | None) -> Path | None:
    if not place.is_dir():
        return None
    numbers = sorted(int(entry.name) for entry in place.iterdir() if re.fullmatch(r"[0-9]+", entry.name))
    if version is None and numbers:
        version = numbers[-1]
    folder = place / str(version)
    if not folder.is_dir():
        return None
    return _single(folder, {entry.name for entry in folder.iterdir()})


def _single(folder: Path, entries: set[str]) -> Path:
    """What was registered, if it is one file or folder; of several, the folder that they are in."""
    return folder / next(iter(entries)) if len(entries) == 1 else folder


def _brought(workspace: Workspace, name: str, version: int | None) -> Path:
    asked = f"/api/models/{name}/versions/{'latest' if version is None else version}"
    try:
        page: dict[str, Any] = workspace.connection.get(asked)
    except WebserviceException as error:
        raise ModelNotFoundException(error.message, hint=error.hint, inner_exception=error) from error
    target = Path(FOLDER) / name / str(page["model"]["version"])
    # aside, then whole: another process of the same run takes the folder as soon as it is there
    half = target.with_name(f".{os.urandom(8).hex()}.half")
    try:
        download(workspace.connection, page, str(half), exist_ok=True)
        half.rename(target)
    except OSError:
        if not target.is_dir():  # else the other process was faster, and has brought the same
            raise
    finally:
        shutil.rmtree(half, ignore_errors=True)
    return _single(target, {file["path"].split("/")[0] for file in page["files"]})


def _not_here(name: str, version: int | None) -> ModelNotFoundException:
    there = sorted(
        f"{model.name}:{number.name}"
        for top in _tops()
        if top.is_dir()
        for model in top.iterdir()
        if model.is_dir()
        for number in model.iterdir()
        if not number.name.startswith(".")
    )
    which = name if version is None else f"{name}:{version}"
    return ModelNotFoundException(
        f"the model {which!r} is neither in {FOLDER} nor in {Path.cwd()}",
        hint=f"models here: {', '.join(there)}" if there else "a service has the models that it was deployed with",
        model=name,
    )
