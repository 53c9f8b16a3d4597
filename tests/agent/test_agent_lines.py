"""The line between two agents, through something that breaks it again and again."""

from __future__ import annotations

import random
import select
import signal
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from runyard.agent.rendezvous.client import Dial
from runyard.agent.rendezvous.server import Switchboard
from runyard.launch.order import Node, WorkOrder
from runyard.testing.compute import wait_until


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    """Agents wait for SIGIO; here there is a loop."""
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGIO, before)


class Breaker(threading.Thread):
    """Passes bytes on between two places, and resets every connection after so many of them."""

    def __init__(self, place: str, budgets: list[int]) -> None:
        super().__init__(daemon=True)
        host, _, port = place.rpartition(":")
        self._target = (host, int(port))
        self._budgets = budgets
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.place = f"127.0.0.1:{self._listening.getsockname()[1]}"
        self.broken = 0

    def run(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            far = socket.create_connection(self._target)
            budget = self._budgets.pop(0) if self._budgets else 1 << 30
            threading.Thread(target=self._pass_on, args=(near, far, budget), daemon=True).start()

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _pass_on(self, near: socket.socket, far: socket.socket, budget: int) -> None:
        with suppress(OSError):
            while budget > 0:
                for source in select.select([near, far], [], [])[0]:
                    data = source.recv(min(budget, 512) or 1)
                    (far if source is near else near).sendall(data)
                    budget = budget - len(data) if data else 0
            self.broken += 1
        reset(near, far)


def reset(*socks: socket.socket) -> None:
    for sock in socks:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()


def an_order(node_rank: int, **fields: object) -> WorkOrder:
    nodes = (Node("a"), Node("b"))
    values = {"nodes": nodes, "node_rank": node_rank, "secret": "between us", "patience_s": 30.0, **fields}
    return WorkOrder("run_1", "/nowhere", ("python",), **values)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.real
def test_nothing_is_lost_or_doubled_however_often_the_line_breaks(seed: int) -> None:
    lead = Switchboard(an_order(0))
    breaker = Breaker(lead.place, random.Random(seed).sample(range(300, 4000), 8))
    breaker.start()
    member = Dial(an_order(1), lambda: breaker.place)
    heard_by_lead: list[int] = []
    heard_by_member: list[int] = []
    try:
        for number in range(200):
            member.say("count", number=number, padding="x" * (number % 90))
            lead.say("count", number=number)

        def all_is_heard() -> bool:
            heard_by_lead.extend(said["number"] for _, said in lead.look())
            heard_by_member.extend(said["number"] for _, said in member.look())
            return lead.is_delivered and member.is_delivered

        wait_until(all_is_heard, "both to have heard everything")
        assert heard_by_lead == heard_by_member == list(range(200))
        assert breaker.broken > 3
        assert lead.lost() == member.lost() == {}
    finally:
        member.close()
        lead.close()
        breaker.close()


@pytest.mark.parametrize("difference", [{"secret": "a guess"}, {"attempt": 2}, {"node_rank": 5}])
def test_who_is_not_of_this_run_and_attempt_is_told_so_and_heard_no_further(difference: dict[str, object]) -> None:
    lead = Switchboard(an_order(0))
    stranger = Dial(an_order(**{"node_rank": 1, **difference}), lambda: lead.place)
    stranger.say("verdict", end={})
    try:
        heard: list[object] = []
        wait_until(lambda: heard.extend([*lead.look(), *stranger.look()]) or stranger.trouble, "an answer")
        assert stranger.trouble == ("it does not know this node: another run, another attempt or another secret")
        assert heard == []
    finally:
        stranger.close()
        lead.close()


def test_a_line_that_somebody_changed_on_the_way_is_not_believed() -> None:
    """It is dropped with its connection, and said again over the next one."""
    lead = Switchboard(an_order(0))
    host, _, port = lead.place.rpartition(":")
    listening = socket.create_server(("127.0.0.1", 0))
    changed: list[bytes] = []

    def forge() -> None:
        while True:
            try:
                near, _ = listening.accept()
            except OSError:
                return
            far = socket.create_connection((host, int(port)))
            threading.Thread(target=_copy, args=(near, far, changed), daemon=True).start()

    threading.Thread(target=forge, daemon=True).start()
    member = Dial(an_order(1), lambda: f"127.0.0.1:{listening.getsockname()[1]}")
    member.say("pay", amount="one")
    heard: list[dict[str, object]] = []
    try:
        wait_until(lambda: heard.extend(s for _, s in lead.look()) or member.look() or heard, "the message")
        assert heard == [{"do": "pay", "amount": "one"}]
        assert changed
    finally:
        member.close()
        lead.close()
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()


def _copy(near: socket.socket, far: socket.socket, changed: list[bytes]) -> None:
    """The first time that the message comes by, another one is passed on."""
    with suppress(OSError):
        while True:
            for source in select.select([near, far], [], [])[0]:
                data = source.recv(4096)
                if not data:
                    return reset(near, far)
                if not changed and b'"one"' in data:
                    changed.append(data)
                    data = data.replace(b'"one"', b'"all"')
                (far if source is near else near).sendall(data)
    return reset(near, far)
