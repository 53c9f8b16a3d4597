from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from runyard.posix import file_lock
from runyard.posix.regular_file import NotRegularFile, open_regular, read_regular


def replace_with(kind: str, path: Path) -> None:
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to("/etc/passwd")
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))


KINDS = ["pipe", "folder", "link", "loop", "socket"]


@pytest.mark.parametrize("kind", KINDS)
def test_only_regular_files_are_opened_and_nothing_blocks(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "file"
    replace_with(kind, path)
    with pytest.raises(NotRegularFile):
        read_regular(path, 100)
    with pytest.raises(NotRegularFile):
        open_regular(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)


def test_a_device_is_not_read() -> None:
    with pytest.raises(NotRegularFile):
        read_regular("/dev/zero", 100)


@pytest.mark.parametrize("kind", KINDS)
def test_a_replaced_lock_counts_as_free(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "agent.lock"
    replace_with(kind, path)
    assert not file_lock.is_held(path)
    assert file_lock.holder(path) is None


def test_not_more_than_the_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with open(path, "wb") as file:
        file.truncate(1 << 40)
    assert read_regular(path, 1000) == bytes(1000)
    path.write_bytes(b"short")
    assert read_regular(path, 1000) == b"short"
