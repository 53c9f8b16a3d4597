"""The link between two agents, through a proxy that interrupts it repeatedly."""

from __future__ import annotations

import random
import select
import socket
import struct
import threading
from contextlib import suppress

import pytest
from rendezvous_support import make_order

from runyard.agent.rendezvous.client import RendezvousClient
from runyard.agent.rendezvous.server import RendezvousServer
from runyard.testing.work_orders import wait_until

pytestmark = pytest.mark.usefixtures("sigio_ignored")


class Breaker(threading.Thread):
    """Forwards bytes to an address, and resets each connection after a given number of them."""

    def __init__(self, address: str, budgets: list[int]) -> None:
        super().__init__(daemon=True)
        host, _, port = address.rpartition(":")
        self._target = (host, int(port))
        self._budgets = budgets
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.interruptions = 0

    def run(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(self._target)
            budget = self._budgets.pop(0) if self._budgets else 1 << 30
            threading.Thread(target=self._forward, args=(near, far, budget), daemon=True).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _forward(self, near: socket.socket, far: socket.socket, budget: int) -> None:
        with suppress(OSError):
            while budget > 0:
                for source in select.select([near, far], [], [])[0]:
                    data = source.recv(min(budget, 512) or 1)
                    (far if source is near else near).sendall(data)
                    budget = budget - len(data) if data else 0
            self.interruptions += 1
        reset(near, far)


def reset(*socks: socket.socket) -> None:
    for sock in socks:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.real
def test_no_message_is_lost_or_duplicated_when_connections_break(seed: int) -> None:
    lead = RendezvousServer(make_order(0))
    breaker = Breaker(lead.address, random.Random(seed).sample(range(300, 4000), 8))
    breaker.start()
    member = RendezvousClient(make_order(1), lambda: breaker.address)
    received_by_lead: list[int] = []
    received_by_member: list[int] = []
    try:
        for number in range(200):
            member.send("stacks", number=number, ranks={"1": "x" * (number % 90)})
            lead.send("dump_stacks", number=number)

        def all_received() -> bool:
            received_by_lead.extend(message["number"] for _, message in lead.receive())
            received_by_member.extend(message["number"] for _, message in member.receive())
            return lead.all_acknowledged and member.all_acknowledged

        wait_until(all_received, "both to have received everything")
        assert received_by_lead == received_by_member == list(range(200))
        assert breaker.interruptions > 3
        assert lead.lost_nodes() == member.lost_nodes() == {}
    finally:
        member.close()
        lead.close()
        breaker.close()


@pytest.mark.parametrize("difference", [{"secret": "a guess"}, {"attempt": 2}, {"node_rank": 5}])
def test_an_agent_of_another_run_or_attempt_is_refused(difference: dict[str, object]) -> None:
    lead = RendezvousServer(make_order(0))
    stranger = RendezvousClient(make_order(**{"node_rank": 1, **difference}), lambda: lead.address)
    stranger.send("end", end={})
    try:
        messages: list[object] = []
        wait_until(lambda: messages.extend([*lead.receive(), *stranger.receive()]) or stranger.connect_error, "a reply")
        assert stranger.connect_error == ("the lead refused this node: another run, another attempt or another secret")
        assert messages == []
    finally:
        stranger.close()
        lead.close()


def test_a_tampered_frame_is_rejected() -> None:
    """It is dropped together with its connection, and sent again over the next one."""
    lead = RendezvousServer(make_order(0))
    host, _, port = lead.address.rpartition(":")
    listener = socket.create_server(("127.0.0.1", 0))
    changed: list[bytes] = []

    def forge() -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            far = socket.create_connection((host, int(port)))
            threading.Thread(target=_copy, args=(near, far, changed), daemon=True).start()

    threading.Thread(target=forge, daemon=True).start()
    member = RendezvousClient(make_order(1), lambda: f"127.0.0.1:{listener.getsockname()[1]}")
    member.send("idle", seconds=1)
    messages: list[dict[str, object]] = []
    try:
        wait_until(lambda: messages.extend(m for _, m in lead.receive()) or member.receive() or messages, "the message")
        assert messages == [{"type": "idle", "seconds": 1}]
        assert [node_rank for node_rank, _ in lead.take_problems()] == [1]
        assert changed
    finally:
        member.close()
        lead.close()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def _copy(near: socket.socket, far: socket.socket, changed: list[bytes]) -> None:
    """Forward the bytes, but replace the message the first time."""
    with suppress(OSError):
        while True:
            for source in select.select([near, far], [], [])[0]:
                data = source.recv(4096)
                if not data:
                    return reset(near, far)
                if not changed and b'"seconds": 1' in data:
                    changed.append(data)
                    data = data.replace(b'"seconds": 1', b'"seconds": 9')
                (far if source is near else near).sendall(data)
    return reset(near, far)
