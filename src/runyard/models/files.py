"""Which files a model is made of: those that were sent for it, or those of a run below a path."""

from __future__ import annotations

from runyard.errors import ModelPathNotFoundException, UserErrorException
from runyard.orchestrator.finding import list_files, locate
from runyard.orchestrator.rooms import Rooms
from runyard.tracking.artifacts import Artifact, checked_path


def uploaded_owner(upload_id: str) -> str:
    """Under which files stand that were sent, until their model is registered."""
    if not upload_id.isalnum():
        raise UserErrorException(f"{upload_id!r} is not the id of an upload", hint="letters and digits")
    return f"model-upload:{upload_id}"


def files_of_run(rooms: Rooms, run_id: str, path: str) -> list[Artifact]:
    """A file ``outputs/model.pt`` is `model.pt` of the model; a folder ``outputs/model`` is its folder `model`.

    What a running script has written but the yard has not kept yet is kept now.
    """
    run = rooms.runs.load(run_id)
    wanted = checked_path(path)
    names = [name for name, _ in list_files(rooms, run)]
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
    kept = {file.path: file for file in rooms.artifacts.files(run_id)}
    files = []
    for name in chosen:
        inside = name[len(base) + 1 :] if base else name
        if name in kept:
            files.append(Artifact(inside, kept[name].digest, kept[name].size))
            continue
        place = locate(rooms, run, name)
        if place is not None:
            files.append(rooms.artifacts.take(inside, place))
    return files
