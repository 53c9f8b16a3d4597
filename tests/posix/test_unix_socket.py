from __future__ import annotations

import socket
from pathlib import Path

import pytest

from runyard.posix import unix_socket


def test_a_bound_socket_is_private_and_accepts_connections(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with unix_socket.bind(path, socket.SOCK_STREAM) as listener:
        assert path.stat().st_mode & 0o777 == 0o600
        assert unix_socket.is_open(path)
        with unix_socket.connect(path, 5) as client, listener.accept()[0] as accepted:
            client.sendall(b"hello")
            assert accepted.recv(5) == b"hello"


def test_a_stale_socket_is_recognized_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    unix_socket.bind(path, socket.SOCK_DGRAM).close()
    assert path.exists()
    assert not unix_socket.is_open(path)
    with pytest.raises(ConnectionRefusedError):
        unix_socket.connect(path, 1)
    with unix_socket.bind(path, socket.SOCK_DGRAM):
        assert unix_socket.is_open(path)
    assert not unix_socket.is_open(tmp_path / "missing")
