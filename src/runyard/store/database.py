"""One SQLite file, many readers, one writer."""

from __future__ import annotations

import errno
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, create_engine, event
from sqlalchemy.exc import OperationalError


class Database:
    """``read()`` and ``write()`` hand out connections; a write is one transaction, and writes queue up.

    Both block, so they are called from threads. Nothing slow (a cluster, a build) may be waited for inside a write.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writing = threading.RLock()
        self._engine = create_engine(
            url_of(path), connect_args={"check_same_thread": False, "timeout": 30}, pool_size=8, max_overflow=32
        )
        event.listen(self._engine, "connect", _prepare_connection)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        with self._engine.connect() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        with self._writing, self._engine.begin() as connection:
            yield connection

    def close(self) -> None:
        self._engine.dispose()


def url_of(path: Path) -> URL:
    """Not made of text: a folder's name may hold what a URL reads as its own, such as ``?`` or ``%``."""
    return URL.create("sqlite", database=str(path))


def is_full(error: BaseException) -> bool:
    """Whether it says that there is no room on the disk: what failed may be tried again once there is."""
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    said = str(getattr(error, "orig", ""))
    return isinstance(error, OperationalError) and ("disk is full" in said or "disk I/O" in said)


def _prepare_connection(connection: sqlite3.Connection, record: Any) -> None:
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=30000", "cache_size=-32000"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
