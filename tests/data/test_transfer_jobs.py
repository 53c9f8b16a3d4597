"""The end of a transfer is recorded as soon as the disk has space again."""

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


class FullDisk:
    """Makes recording the end of a transfer fail ``failures`` times."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, failures: int) -> None:
        self.failures = failures
        self.failed = threading.Event()
        end = TransferStore.end

        def end_or_fail(*args: object) -> None:
            if self.failures:
                self.failures -= 1
                self.failed.set()
                raise OperationalError("UPDATE", {}, sqlite3.OperationalError("database or disk is full"))
            end(*args)

        monkeypatch.setattr(TransferStore, "end", end_or_fail)
        monkeypatch.setattr(transfer_jobs, "_DISK_FULL_RETRY_S", 0.01)


def upload_request(tmp_path: Path) -> TransferRequest:
    (tmp_path / "up").mkdir()
    (tmp_path / "up" / "a").write_text("a")
    return TransferRequest("upload", DEFAULT_STORE, local=str(tmp_path / "up"), path="there")


def start_transfers(database: Database, home: Path) -> tuple[Transfers, threading.Event]:
    transfers, ended = Transfers(database, Datastores(database, home)), threading.Event()
    transfers.on_end = lambda transfer_id: ended.set()
    return transfers, ended


def test_recording_the_end_is_retried_while_the_disk_is_full(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FullDisk(monkeypatch, failures=3)
    transfers, ended = start_transfers(database, tmp_path)
    transfers.begin("one", upload_request(tmp_path))
    assert ended.wait(30)
    assert transfers.view("one").state == DONE
    assert not transfers.busy
    transfers.close()


def test_a_transfer_whose_end_was_not_recorded_is_resumed_by_the_next_yard(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FullDisk(monkeypatch, failures=1_000_000)
    transfers, ended = start_transfers(database, tmp_path)
    transfers.begin("one", upload_request(tmp_path))
    assert disk.failed.wait(30)
    transfers.close()
    assert ended.wait(30)
    assert transfers.view("one").state == RUNNING
    disk.failures = 0
    next_transfers, ended = start_transfers(database, tmp_path)
    next_transfers.recover()
    assert ended.wait(30)
    assert next_transfers.view("one").state == DONE
    next_transfers.close()
