"""Agents without a run: an order for two nodes, and a member that can send any frame."""

from __future__ import annotations

import json
import socket
from typing import Any

from hypothesis import strategies as st

from runyard.agent.rendezvous.auth import (
    CHALLENGE_BYTES,
    WELCOME_BYTES,
    Credentials,
    FrameKey,
    MemberHandshake,
)
from runyard.launch.order import Node, WorkOrder

CREDENTIALS = Credentials("run_1", 1, "between us")
JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda items: st.lists(items, max_size=4) | st.dictionaries(st.text(max_size=10), items, max_size=4),
    max_leaves=12,
)


def make_order(node_rank: int, **fields: Any) -> WorkOrder:
    nodes = (Node("a"), Node("b"))
    values = {"nodes": nodes, "node_rank": node_rank, "secret": CREDENTIALS.secret, "peer_timeout_s": 30.0, **fields}
    return WorkOrder("run_1", values.pop("folder", "/nowhere"), ("python",), **values)


def connect(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=30)


class RawMember:
    """An authenticated connection to a lead, over which any frame can be sent. The lead must run in another thread or
    process, or be polled by ``turn``."""

    def __init__(self, address: str, order: WorkOrder, turn: Any = lambda: None) -> None:
        self.socket = connect(address)
        self._turn = turn
        self._number = 0
        handshake = MemberHandshake(Credentials(order.run_id, order.attempt, order.secret), order.node_rank, 0)
        self.socket.sendall(handshake.hello(self._read(CHALLENGE_BYTES)))
        handshake.verify(self._read(WELCOME_BYTES))
        self._key: FrameKey = handshake.frame_keys()[0]

    def __enter__(self) -> RawMember:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send_frame(self, payload: bytes) -> None:
        self.socket.sendall(self._key.seal(payload))

    def send(self, message_type: str, **values: Any) -> None:
        self._number += 1
        self.send_frame(json.dumps([self._number, 0, {"type": message_type, **values}]).encode())

    def _read(self, size: int) -> bytes:
        data = b""
        self.socket.settimeout(0.01)
        for _ in range(3000):
            self._turn()
            try:
                part = self.socket.recv(size - len(data))
            except TimeoutError:
                continue
            assert part, "the lead closed the connection"
            data += part
            if len(data) == size:
                self.socket.settimeout(30)
                return data
        raise AssertionError("the lead does not respond")
