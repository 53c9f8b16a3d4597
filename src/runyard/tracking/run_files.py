"""The stored files of runs as a read-only datastore, so that a run's outputs can be the input of another."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import select

from runyard.data.base import BytesCallback, DataStore, StoredFile, unlink_quietly
from runyard.data.folder_store import FolderStore
from runyard.errors import DataException, UserErrorException
from runyard.spec.data import run_file_path
from runyard.store import schema
from runyard.store.database import Database
from runyard.tracking.artifacts import Artifacts
from runyard.tracking.content_check import check_content

_PATH = re.compile(r"(?:ExperimentRun(?:/dcid\.([^/]+)(?:/(.+))?)?)?", re.DOTALL)  # as `run_file_path` writes it


class RunFiles(DataStore):
    """Paths look like ``ExperimentRun/dcid.<run id>/outputs/model.pt``; etags are digests."""

    kind = "runs"
    is_local = True
    etags_are_digests = True
    writable = False

    def __init__(self, database: Database, artifacts: Artifacts) -> None:
        self._database, self._artifacts = database, artifacts

    def list(self, prefix: str = "") -> Iterator[StoredFile]:
        match = _PATH.fullmatch(prefix)
        if match is None:
            return
        run_id, path = match.groups()
        table, runs = schema.artifacts.c, schema.runs.c
        # the join excludes files that other components store in the same table
        query = select(table.run_id, table.path, table.digest, table.size, table.created_at).join(
            schema.runs, runs.run_id == table.run_id
        )
        if run_id:
            query = query.where(table.run_id == run_id)
        if path:
            below = (table.path >= f"{path}/") & (table.path < f"{path}0")  # "0" is the character after "/"
            query = query.where((table.path == path) | below)
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        for row in rows:
            yield StoredFile(run_file_path(row.run_id, row.path), row.size, row.digest, row.created_at)

    def head(self, path: str) -> StoredFile | None:
        return next((stored for stored in self.list(path) if stored.path == path), None)

    def get(self, stored: StoredFile, draft: Path, on_progress: BytesCallback, canceled: threading.Event) -> str:
        content = self._artifacts.content(stored.etag)
        folder = FolderStore(content.parent)
        content_file = folder.head(content.name)
        if content_file is None:
            raise FileNotFoundError(stored.path)
        digest = folder.get(content_file, draft, on_progress, canceled)
        if digest != stored.etag:
            unlink_quietly(draft)
            raise DataException(
                f"{stored.path} is damaged: its content is not what the run stored",
                hint=f"the yard's disk has changed {content}: check the disk and the kernel log",
            )
        return digest

    def put(
        self, path: str, source: Path, on_progress: BytesCallback, canceled: threading.Event
    ) -> tuple[StoredFile, str]:
        raise UserErrorException("the files of runs are read-only")

    def delete(self, path: str) -> None:
        raise UserErrorException("the files of runs are read-only")

    def stored_digest(self, stored: StoredFile) -> str | None:
        return stored.etag

    def content_path(self, stored: StoredFile) -> Path | None:
        content = self._artifacts.content(stored.etag)
        check_content(content, stored.etag, stored.path)
        return content
