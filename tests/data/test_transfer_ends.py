"""The end of a transfer is written down, if there is room on the disk only later."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from runyard.data import transfer_jobs
from runyard.data.registry import Datastores
from runyard.data.transfer_jobs import DONE, RUNNING, Transfers
from runyard.spec.data import DEFAULT_STORE
from runyard.store.database import Database
from runyard.store.datastores import TransferStore
from runyard.store.open_store import open_database
from runyard.wire.data import TransferRequest


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = open_database(tmp_path / "yard.db")
    yield database
    database.close()


class Disk:
    """That of the yard: has no room for the end of a transfer so many times."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, full: int) -> None:
        self.full = full
        self.refused = threading.Event()
        end = TransferStore.end

        def end_if_there_is_room(*given: object) -> None:
            if self.full:
                self.full -= 1
                self.refused.set()
                raise OperationalError("UPDATE", {}, sqlite3.OperationalError("database or disk is full"))
            end(*given)

        monkeypatch.setattr(TransferStore, "end", end_if_there_is_room)
        monkeypatch.setattr(transfer_jobs, "_DISK_FULL_RETRY_S", 0.01)


def an_upload(tmp_path: Path) -> TransferRequest:
    (tmp_path / "up").mkdir()
    (tmp_path / "up" / "a").write_text("a")
    return TransferRequest("upload", DEFAULT_STORE, local=str(tmp_path / "up"), path="there")


def at_work(database: Database, home: Path) -> tuple[Transfers, threading.Event]:
    moving, ended = Transfers(database, Datastores(database, home)), threading.Event()
    moving.on_end = lambda transfer_id: ended.set()
    return moving, ended


def test_the_end_of_a_transfer_waits_for_room_on_the_disk(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Disk(monkeypatch, full=3)
    moving, ended = at_work(database, tmp_path)
    moving.begin("one", an_upload(tmp_path))
    assert ended.wait(30)
    assert moving.view("one").state == DONE
    assert not moving.busy
    moving.close()


def test_one_that_waits_for_room_when_the_yard_closes_is_left_for_the_next(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch, full=1_000_000)
    moving, ended = at_work(database, tmp_path)
    moving.begin("one", an_upload(tmp_path))
    assert disk.refused.wait(30)
    moving.close()
    assert ended.wait(30)
    assert moving.view("one").state == RUNNING
    disk.full = 0
    following, ended = at_work(database, tmp_path)
    following.recover()
    assert ended.wait(30)
    assert following.view("one").state == DONE
    following.close()
