"""Which files a model is made of: those that were sent for it, or those of a run below a path."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path

from sqlalchemy import delete, select

from runyard import clock
from runyard.errors import ModelPathNotFoundException, UserErrorException
from runyard.orchestrator.components import Rooms
from runyard.orchestrator.run_files import list_files, locate, written_folders
from runyard.store import schema
from runyard.store.runs import RunRecord
from runyard.tracking.artifacts import Artifact, checked_path
from runyard.tracking.file_walk import walk

_UPLOAD = "model-upload:"
_PATIENCE_S = 24 * 3600.0


def uploaded_owner(upload_id: str) -> str:
    """Under which files stand that were sent, until their model is registered."""
    if not upload_id.isalnum():
        raise UserErrorException(f"{upload_id!r} is not the id of an upload", hint="letters and digits")
    return f"{_UPLOAD}{upload_id}"


def forget_uploads(rooms: Rooms) -> None:
    """Files that were sent for models that were never registered: nobody will, after a day."""
    table = schema.artifacts
    # a range and not a LIKE: that would read the names of all files of all runs, at every start of a yard
    sent = (table.c.run_id > _UPLOAD) & (table.c.run_id < _UPLOAD[:-1] + chr(ord(_UPLOAD[-1]) + 1))
    old = sent & (table.c.created_at < clock.now() - _PATIENCE_S)
    with rooms.database.read() as connection:
        rows = connection.execute(select(table.c.path, table.c.digest, table.c.size).where(old)).all()
    if not rows:
        return
    with rooms.database.write() as connection:
        connection.execute(delete(table).where(old))
    rooms.artifacts.sweep(Artifact(*row) for row in rows)


def files_of_run(rooms: Rooms, run_id: str, path: str) -> list[Artifact]:
    """A file ``outputs/model.pt`` is `model.pt` of the model; a folder ``outputs/model`` is its folder `model`.

    What a running script has written but the yard has not kept yet is kept now. All of them are held.
    """
    wanted = checked_path(path)
    kept = {file.path: file for file in rooms.artifacts.files(run_id)}
    written = _written(rooms, rooms.runs.load(run_id), kept)
    names = sorted(kept.keys() | written.keys())
    chosen = [name for name in names if name == wanted or name.startswith(wanted + "/")]
    if not chosen:
        top = sorted({name.rpartition("/")[0] or name for name in names})
        shown = ", ".join(top[:8]) + (", …" if len(top) > 8 else "")
        raise ModelPathNotFoundException(
            f"run {run_id} has no file or folder {wanted!r}",
            hint=f"it has files in: {shown}" if top else "it has no files (yet): a script keeps them in outputs/",
            run_id=run_id,
        )
    base = wanted.rpartition("/")[0]
    files: list[Artifact] = []
    try:
        for name in chosen:
            inside = name[len(base) + 1 :] if base else name
            if name in kept:
                files.append(Artifact(inside, kept[name].digest, kept[name].size))
                rooms.artifacts.hold(files[-1:])
            else:
                files.append(rooms.artifacts.take(inside, written[name]))
    except BaseException:  # nobody else knows which are held
        rooms.artifacts.release(files)
        raise
    return files


def _written(rooms: Rooms, run: RunRecord, kept: Container[str]) -> dict[str, Path]:
    """Logs, and what a running script has in the folders that will be kept when it ends."""
    logs = ((name, locate(rooms, run, name)) for name, _ in list_files(rooms, run) if name not in kept)
    found = {name: place for name, place in logs if place is not None}
    for prefix, folder in written_folders(rooms, run):
        if folder.is_dir() and not folder.is_symlink():
            found.update((f"{prefix}/{one.name}", one.source) for one in walk(folder)[0])
    return found
