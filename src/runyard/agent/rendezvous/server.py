"""The lead's end: it listens, and every other node of the run has one line to it."""

from __future__ import annotations

import ipaddress
import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Optional

from runyard import clock
from runyard.agent.rendezvous.auth import LEAD, MEMBER, Claim, Seals, is_proof, nonce, proof
from runyard.agent.rendezvous.line_socket import Connection, signal_when_ready
from runyard.agent.rendezvous.messaging import REDIAL_S
from runyard.agent.rendezvous.reliable_link import Link, Message
from runyard.launch.order import WorkOrder

_ANSWER_S = 10.0
_MOST_CALLERS = 64  # who have not proven who they are
_LONGEST = 4096


class Switchboard:
    def __init__(self, order: WorkOrder) -> None:
        """Raises OSError when there is no port to listen on."""
        self._order = order
        self._links = {node_rank: Link(order.patience_s) for node_rank in range(1, len(order.nodes))}
        self._callers: list[_Caller] = []
        address = order.nodes[0].address
        self._listening = _listening(address)
        self.place = f"{address}:{self._listening.getsockname()[1]}"  # where the others find it

    def say(self, do: str, **facts: Any) -> None:
        for link in self._links.values():
            link.say(do, **facts)

    def say_to(self, node_rank: int, do: str, **facts: Any) -> None:
        self._links[node_rank].say(do, **facts)

    def look(self) -> list[tuple[int, Message]]:
        self._accept()
        self._hear_callers()
        return [(node_rank, message) for node_rank, link in self._links.items() for message in link.look()]

    def lost(self) -> dict[int, str]:
        return {node_rank: how for node_rank, link in self._links.items() for how in _lost(link)}

    def is_quiet(self, node_rank: int) -> bool:
        return self._links[node_rank].is_quiet

    @property
    def is_delivered(self) -> bool:
        return all(link.is_delivered for link in self._links.values())

    def close(self) -> None:
        self._listening.close()
        for link in self._links.values():
            link.close()
        for caller in self._callers:
            caller.connection.close()

    def _accept(self) -> None:
        with suppress(BlockingIOError):
            while True:
                try:
                    sock, _ = self._listening.accept()
                except BlockingIOError:
                    raise
                except OSError:  # it hung up before it was answered, or there are too many open files
                    return
                caller = _Caller(Connection(sock))
                self._callers.append(caller)
                caller.connection.put(json.dumps({"nonce": caller.nonce}).encode())

    def _hear_callers(self) -> None:
        for caller in list(self._callers):
            line = caller.connection.take(_LONGEST)
            if line is not None or caller.connection.is_over or clock.monotonic() > caller.since + _ANSWER_S:
                self._callers.remove(caller)
                if line is None or not self._admit(caller, line):
                    caller.connection.close()
        while len(self._callers) > _MOST_CALLERS:
            self._callers.pop(0).connection.close()

    def _admit(self, caller: _Caller, line: bytes) -> bool:
        try:
            said = json.loads(line)
            node, heard, their_nonce = int(said["node"]), int(said["heard"]), str(said["nonce"])
            shown = said["proof"]
        except (ValueError, KeyError, TypeError):  # a stranger: a port scanner, or a browser
            return False
        order, link = self._order, self._links.get(node)
        claim = Claim(order.run_id, order.attempt, node, caller.nonce, their_nonce)
        if link is None or not is_proof(shown, order.secret, MEMBER, claim, heard):
            caller.connection.put(json.dumps({"refused": "another run, another attempt or another secret"}).encode())
            return False
        answer = {"heard": link.heard, "proof": proof(order.secret, LEAD, claim, link.heard)}
        caller.connection.put(json.dumps(answer).encode())
        link.attach(caller.connection, Seals(order.secret, LEAD, claim), Seals(order.secret, MEMBER, claim), heard)
        return True


class _Caller:
    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.nonce = nonce()
        self.since = clock.monotonic()


def _lost(link: Link) -> Iterator[str]:
    if link.is_closed or link.reset_s > REDIAL_S:
        yield "its agent is gone, and with it the node's processes"
    elif link.silent_s > link.patience_s:
        yield f"nothing was heard from it for {clock.duration_text(link.silent_s)}"


def _listening(address: str) -> socket.socket:
    """On that address alone, as far as it is this machine's own: a port that nobody needs is not opened to them."""
    family, place = _resolved(address)
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((place or ("::" if family == socket.AF_INET6 else ""), 0))
    except OSError:  # reached through another machine's address
        sock.bind(("::" if family == socket.AF_INET6 else "", 0))
    sock.listen(128)
    sock.setblocking(False)
    signal_when_ready(sock.fileno())
    return sock


def _resolved(address: str) -> tuple[socket.AddressFamily, Optional[str]]:
    """A machine's own name may lead it to its loopback interface, where nobody else would find it: then None."""
    try:
        family, _, _, _, found = socket.getaddrinfo(address, None, type=socket.SOCK_STREAM)[0]
    except OSError:
        return socket.AF_INET, None
    place = str(found[0])
    is_name = place != address.strip("[]")
    return family, None if is_name and ipaddress.ip_address(place.partition("%")[0]).is_loopback else place
