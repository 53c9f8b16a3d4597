"""Access to the SQLite database: many readers, one writer."""

from __future__ import annotations

import errno
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from sqlalchemy import URL, Connection, QueuePool, create_engine, event
from sqlalchemy.exc import OperationalError

MAX_INTEGER = 1 << 62  # safely within SQLite's 64 bits; larger numbers cannot be bound to a statement
T = TypeVar("T")


class Database:
    """``read()`` and ``write()`` provide connections; a write is one transaction, and writes are serialized.

    Both block, so call them from worker threads. Do not wait for anything slow (a cluster, a build) inside a write.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writing = threading.RLock()
        path.touch(mode=0o600)
        status = path.stat()
        self._file_id = (status.st_dev, status.st_ino)
        self._engine = create_engine(
            sqlite_url(path), creator=self._connect, poolclass=QueuePool, pool_size=8, max_overflow=32
        )
        event.listen(self._engine, "connect", _prepare_connection)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        with self._engine.connect() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        with self._writing, self._engine.begin() as connection:
            # Python begins a transaction at the first INSERT, UPDATE or DELETE: a SELECT before it, such as the check
            # for an existing name, would not be part of the transaction
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection

    def is_lost(self) -> bool:
        """True if the file was removed or replaced while the home folder is still there."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return self.path.parent.is_dir()
        return (status.st_dev, status.st_ino) != self._file_id

    def close(self) -> None:
        self._engine.dispose()

    def _connect(self) -> sqlite3.Connection:
        # "rw": without it, SQLite would continue with a new empty database after the file was removed
        return sqlite3.connect(f"file:{quote(str(self.path))}?mode=rw", uri=True, check_same_thread=False, timeout=30)


def sqlite_url(path: Path) -> URL:
    """Built from parts: the path may contain characters that are special in a URL, such as ``?`` or ``%``."""
    return URL.create("sqlite", database=str(path))


def is_disk_full(error: BaseException) -> bool:
    """True if the disk is full: the operation can be retried later."""
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    text = str(getattr(error, "orig", ""))
    return isinstance(error, OperationalError) and ("disk is full" in text or "disk I/O" in text)


def batches(values: Iterable[T], size: int = 500) -> Iterator[list[T]]:
    """Split distinct values into lists that stay below SQLite's limit of variables per statement."""
    distinct = list(dict.fromkeys(values))
    for begin in range(0, len(distinct), size):
        yield distinct[begin : begin + size]


def _prepare_connection(connection: sqlite3.Connection, record: Any) -> None:
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=30000", "cache_size=-32000"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
