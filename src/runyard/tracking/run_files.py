"""The files that runs left, as a datastore to read: what one run wrote can be given to another, on any target."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import select

from runyard.data.base import DataStore, Moved, Stored, drop
from runyard.data.folder_store import FolderStore
from runyard.errors import DataException, UserErrorException
from runyard.spec.data import place_of_run_file
from runyard.store import schema
from runyard.store.database import Database
from runyard.tracking.artifacts import Artifacts

_PLACE = re.compile(r"(?:ExperimentRun(?:/dcid\.([^/]+)(?:/(.+))?)?)?", re.DOTALL)  # as `place_of_run_file` writes it


class RunFiles(DataStore):
    """``ExperimentRun/dcid.<run id>/outputs/model.pt``."""

    kind = "runs"
    is_here = True
    marks_are_digests = True
    writable = False

    def __init__(self, database: Database, artifacts: Artifacts) -> None:
        self._database, self._artifacts = database, artifacts

    def list(self, prefix: str = "") -> Iterator[Stored]:
        place = _PLACE.fullmatch(prefix)
        if place is None:
            return
        run_id, path = place.groups()
        table, runs = schema.artifacts.c, schema.runs.c
        # other rooms keep files of their own in the same table
        query = select(table.run_id, table.path, table.digest, table.size, table.created_at).join(
            schema.runs, runs.run_id == table.run_id
        )
        if run_id:
            query = query.where(table.run_id == run_id)
        if path:
            below = (table.path >= f"{path}/") & (table.path < f"{path}0")  # "0" comes right after "/"
            query = query.where((table.path == path) | below)
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        for row in rows:
            yield Stored(place_of_run_file(row.run_id, row.path), row.size, row.digest, row.created_at)

    def head(self, path: str) -> Stored | None:
        return next((stored for stored in self.list(path) if stored.path == path), None)

    def get(self, stored: Stored, half: Path, moved: Moved, abandoned: threading.Event) -> str:
        content = self._artifacts.content(stored.mark)
        folder = FolderStore(content.parent)
        there = folder.head(content.name)
        if there is None:
            raise FileNotFoundError(stored.path)
        digest = folder.get(there, half, moved, abandoned)
        if digest != stored.mark:
            drop(half)
            raise DataException(
                f"{stored.path} is damaged: its content is not what the run left",
                hint=f"the yard's disk has changed it: see {content}, and what the disk's own log says",
            )
        return digest

    def put(self, path: str, source: Path, moved: Moved, abandoned: threading.Event) -> tuple[Stored, str]:
        raise UserErrorException("the files of runs can only be read")

    def delete(self, path: str) -> None:
        raise UserErrorException("the files of runs can only be read")

    def digest_kept(self, stored: Stored) -> str | None:
        return stored.mark

    def content_path(self, stored: Stored) -> Path | None:
        return self._artifacts.content(stored.mark)
