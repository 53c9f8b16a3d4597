"""Where a file of a run is: kept, a log, or still in the working copy of a running script."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from runyard.orchestrator.components import Rooms
from runyard.spec.json import from_json
from runyard.spec.run import RunSpec
from runyard.store.runs import RunRecord

LOGS = "azureml-logs"


def list_files(rooms: Rooms, record: RunRecord) -> list[tuple[str, int]]:
    """Names as people say them, with sizes, sorted."""
    found: dict[str, int] = {}
    # the open folders first: what is kept meanwhile is moved out of them, and then stands in the second list
    for prefix, folder in _open_folders(rooms, record):
        for place, _, names in os.walk(folder):  # passes over folders that vanish meanwhile
            for path in (Path(place) / name for name in names):
                with suppress(OSError):  # a running script may have removed it
                    if path.is_file() and _inside(path, folder):
                        found[f"{prefix}/{path.relative_to(folder).as_posix()}"] = path.stat().st_size
    found.update((kept.path, kept.size) for kept in rooms.artifacts.files(record.run_id))
    return sorted(found.items())


def locate(rooms: Rooms, record: RunRecord, name: str) -> Path | None:
    if any(kept.path == name for kept in rooms.artifacts.files(record.run_id)):
        return rooms.artifacts.path_of(record.run_id, name)
    for prefix, folder in _open_folders(rooms, record):
        if name.startswith(prefix + "/"):
            path = folder / name[len(prefix) + 1 :]
            with suppress(OSError, ValueError):  # a name that no file can have
                if path.is_file() and _inside(path, folder):
                    return path
    return None


def written_folders(rooms: Rooms, record: RunRecord) -> list[tuple[str, Path]]:
    """The folders of a submitted run whose files are kept, by their names."""
    if record.spec is None:
        return []
    names = dict.fromkeys(("outputs", *from_json(RunSpec, record.spec).directories_to_watch))
    return [(name, rooms.folder(record.run_id).work / name) for name in names]


def _open_folders(rooms: Rooms, record: RunRecord) -> list[tuple[str, Path]]:
    folder = rooms.folder(record.run_id)
    watched = from_json(RunSpec, record.spec).directories_to_watch if record.spec else ()
    return [(LOGS, folder.logs), *((name, folder.work / name) for name in watched)]


def _inside(path: Path, folder: Path) -> bool:
    """A link that a script made must not lead a reader out of the run's own folder, nor may the folder be one."""
    return path.resolve().is_relative_to(folder.parent.resolve() / folder.name)
