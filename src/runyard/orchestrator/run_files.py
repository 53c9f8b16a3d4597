"""Finds the files of a run: stored artifacts, logs, and files in the working copy of a running script."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from runyard.orchestrator.components import Components
from runyard.spec.json import from_json
from runyard.spec.run import RunSpec
from runyard.store.runs import RunRecord
from runyard.tracking.artifacts import FileSource
from runyard.tracking.file_walk import decode_name

LOGS = "azureml-logs"


def list_files(components: Components, record: RunRecord) -> list[tuple[str, int]]:
    """User-visible names with sizes, sorted."""
    sizes: dict[str, int] = {}
    # the live folders first: a file that is being stored moves from there to the artifacts
    for prefix, folder in _live_folders(components, record):
        for parent, _, names in os.walk(folder):  # skips folders that disappear during the walk
            for path in (Path(parent) / name for name in names):
                with suppress(OSError):  # a running script may have removed it
                    if path.is_file() and _is_inside(path, folder):
                        sizes[f"{prefix}/{decode_name(path.relative_to(folder).as_posix())}"] = path.stat().st_size
    sizes.update((artifact.path, artifact.size) for artifact in components.artifacts.files(record.run_id))
    return sorted(sizes.items())


def find_file(components: Components, record: RunRecord, name: str) -> FileSource | None:
    if any(artifact.path == name for artifact in components.artifacts.files(record.run_id)):
        return components.artifacts.source_of(record.run_id, name)
    for prefix, folder in _live_folders(components, record):
        if name.startswith(prefix + "/"):
            path = folder / name[len(prefix) + 1 :]
            with suppress(OSError, ValueError):  # an invalid file name
                if path.is_file() and _is_inside(path, folder):
                    return FileSource(path)
    return None


def output_folders(components: Components, record: RunRecord) -> list[tuple[str, Path]]:
    """Names and paths of the folders of a submitted run whose files are stored."""
    if record.spec is None:
        return []
    names = dict.fromkeys(("outputs", *from_json(RunSpec, record.spec).directories_to_watch))
    return [(name, components.folder(record.run_id).work / name) for name in names]


def _live_folders(components: Components, record: RunRecord) -> list[tuple[str, Path]]:
    folder = components.folder(record.run_id)
    watched = from_json(RunSpec, record.spec).directories_to_watch if record.spec else ()
    return [(LOGS, folder.logs), *((name, folder.work / name) for name in watched)]


def _is_inside(path: Path, folder: Path) -> bool:
    """False for a link that leads out of the run's folder, which must not be readable through the API."""
    return path.resolve().is_relative_to(folder.parent.resolve() / folder.name)
