"""The user at the other end of a local TCP connection."""

from __future__ import annotations

import os
import socket

import pytest

from runyard.posix.peer_user import find_user


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_the_user_of_a_local_client_is_known(address: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        server = socket.create_server((address, 0), family=family)
    except OSError:
        pytest.skip("no IPv6")
    with server, socket.create_connection(server.getsockname()[:2]):
        connection, peer = server.accept()
        with connection:
            assert find_user(family, peer, connection.getsockname()) == os.geteuid()


def test_a_client_that_has_disconnected_has_no_user() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()
        connection, peer = server.accept()
        with connection:
            assert find_user(socket.AF_INET, peer, connection.getsockname()) is None


def test_a_client_that_is_not_on_this_machine_has_no_user() -> None:
    assert find_user(socket.AF_INET, ("192.0.2.1", 1234), ("127.0.0.1", 8787)) is None
    assert find_user(socket.AF_INET, ("not an address", 1234), ("127.0.0.1", 8787)) is None
