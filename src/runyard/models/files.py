"""The files of a model to be registered: uploaded files, or files of a run."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path

from sqlalchemy import delete, select

from runyard import clock
from runyard.errors import ModelPathNotFoundException, UserErrorException
from runyard.orchestrator.components import Components
from runyard.orchestrator.run_files import find_file, list_files, output_folders
from runyard.store import schema
from runyard.store.runs import RunRecord
from runyard.tracking.artifacts import Artifact, validate_path
from runyard.tracking.file_walk import walk

_UPLOAD = "model-upload:"
_STALE_AFTER_S = 24 * 3600.0


def upload_owner(upload_id: str) -> str:
    """The owner of uploaded files until their model is registered."""
    if not upload_id.isalnum():
        raise UserErrorException(f"invalid upload id {upload_id!r}", hint="use letters and digits")
    return f"{_UPLOAD}{upload_id}"


def delete_stale_uploads(components: Components) -> None:
    """Delete uploads that are older than a day: their model was never registered."""
    table = schema.artifacts
    # a range instead of LIKE, which would read the names of all files of all runs at every start of a yard
    uploaded = (table.c.run_id > _UPLOAD) & (table.c.run_id < _UPLOAD[:-1] + chr(ord(_UPLOAD[-1]) + 1))
    stale = uploaded & (table.c.created_at < clock.now() - _STALE_AFTER_S)
    with components.database.read() as connection:
        rows = connection.execute(select(table.c.path, table.c.digest, table.c.size).where(stale)).all()
    if not rows:
        return
    with components.database.write() as connection:
        connection.execute(delete(table).where(stale))
    components.artifacts.remove_unreferenced(Artifact(*row) for row in rows)


def select_run_files(components: Components, run_id: str, path: str) -> list[Artifact]:
    """Select files of a run: ``outputs/model.pt`` becomes `model.pt` of the model, a folder ``outputs/net`` `net/`.

    Files that a running script has written, but that are not stored yet, are stored now. The caller must release all
    returned files.
    """
    selection = validate_path(path)
    stored = {file.path: file for file in components.artifacts.files(run_id)}
    unstored = _unstored_files(components, components.runs.load(run_id), stored)
    names = sorted(stored.keys() | unstored.keys())
    selected = [name for name in names if name == selection or name.startswith(selection + "/")]
    if not selected:
        folders = sorted({name.rpartition("/")[0] or name for name in names})
        listing = ", ".join(folders[:8]) + (", …" if len(folders) > 8 else "")
        raise ModelPathNotFoundException(
            f"run {run_id} has no file or folder {selection!r}",
            hint=f"it has files in: {listing}" if folders else "it has no files yet: scripts write them to outputs/",
            run_id=run_id,
        )
    base = selection.rpartition("/")[0]
    files: list[Artifact] = []
    try:
        for name in selected:
            path_in_model = name[len(base) + 1 :] if base else name
            if name in stored:
                files.append(Artifact(path_in_model, stored[name].digest, stored[name].size))
                components.artifacts.hold(files[-1:])
            else:
                files.append(components.artifacts.add_content(path_in_model, unstored[name]))
    except BaseException:
        components.artifacts.release(files)
        raise
    return files


def _unstored_files(components: Components, run: RunRecord, stored: Container[str]) -> dict[str, Path]:
    """Logs, and files of a running script in the folders that are stored when it ends."""
    logs = ((name, find_file(components, run, name)) for name, _ in list_files(components, run) if name not in stored)
    paths = {name: source.path for name, source in logs if source is not None}
    for prefix, folder in output_folders(components, run):
        if folder.is_dir() and not folder.is_symlink():
            paths.update((f"{prefix}/{file.name}", file.source) for file in walk(folder)[0])
    return paths
