"""The lead's side of the rendezvous: it listens, and every other node has one link to it."""

from __future__ import annotations

import ipaddress
import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Optional

from runyard import clock
from runyard.agent.rendezvous.auth import (
    LEAD,
    MEMBER,
    Handshake,
    LineSigner,
    make_nonce,
    make_proof,
    verify_proof,
)
from runyard.agent.rendezvous.line_socket import LineSocket, enable_sigio
from runyard.agent.rendezvous.messaging import RECONNECT_S
from runyard.agent.rendezvous.reliable_link import Message, ReliableLink
from runyard.launch.order import WorkOrder

_HANDSHAKE_TIMEOUT_S = 10.0
_MAX_UNAUTHENTICATED = 64
_MAX_LINE_BYTES = 4096


class RendezvousServer:
    never_connected = False
    connect_error = ""

    def __init__(self, order: WorkOrder) -> None:
        """Raises OSError if no port is available."""
        self._order = order
        self._links = {node_rank: ReliableLink(order.peer_timeout_s) for node_rank in range(1, len(order.nodes))}
        self._unauthenticated: list[_UnauthenticatedClient] = []
        host = order.nodes[0].address
        self._listener = _listen(host)
        self.address = f"{host}:{self._listener.getsockname()[1]}"

    def send(self, message_type: str, **values: Any) -> None:
        for link in self._links.values():
            link.send(message_type, **values)

    def send_to(self, node_rank: int, message_type: str, **values: Any) -> None:
        self._links[node_rank].send(message_type, **values)

    def receive(self) -> list[tuple[int, Message]]:
        self._accept()
        self._authenticate()
        return [(node_rank, message) for node_rank, link in self._links.items() for message in link.receive()]

    def lost_nodes(self) -> dict[int, str]:
        return {node_rank: evidence for node_rank, link in self._links.items() for evidence in _loss_evidence(link)}

    def misses_heartbeats(self, node_rank: int) -> bool:
        return self._links[node_rank].misses_heartbeats

    @property
    def all_acknowledged(self) -> bool:
        return all(link.all_acknowledged for link in self._links.values())

    def close(self) -> None:
        self._listener.close()
        for link in self._links.values():
            link.close()
        for client in self._unauthenticated:
            client.socket.close()

    def _accept(self) -> None:
        with suppress(BlockingIOError):
            while True:
                try:
                    sock, _ = self._listener.accept()
                except BlockingIOError:
                    raise
                except OSError:  # the client closed the connection already, or there are too many open files
                    return
                client = _UnauthenticatedClient(LineSocket(sock))
                self._unauthenticated.append(client)
                client.socket.send_line(json.dumps({"nonce": client.nonce}).encode())

    def _authenticate(self) -> None:
        for client in list(self._unauthenticated):
            line = client.socket.read_line(_MAX_LINE_BYTES)
            is_late = clock.monotonic() > client.connected_at + _HANDSHAKE_TIMEOUT_S
            if line is not None or client.socket.has_ended or is_late:
                self._unauthenticated.remove(client)
                if line is None or not self._admit(client, line):
                    client.socket.close()
        while len(self._unauthenticated) > _MAX_UNAUTHENTICATED:
            self._unauthenticated.pop(0).socket.close()

    def _admit(self, client: _UnauthenticatedClient, line: bytes) -> bool:
        try:
            request = json.loads(line)
            node, received, nonce = int(request["node"]), int(request["received"]), str(request["nonce"])
            proof = request["proof"]
        except (ValueError, KeyError, TypeError):  # not an agent: a port scanner or a browser
            return False
        order, link = self._order, self._links.get(node)
        handshake = Handshake(order.run_id, order.attempt, node, client.nonce, nonce)
        if link is None or not verify_proof(proof, order.secret, MEMBER, handshake, received):
            client.socket.send_line(json.dumps({"refused": "another run, another attempt or another secret"}).encode())
            return False
        reply = {"received": link.received, "proof": make_proof(order.secret, LEAD, handshake, link.received)}
        client.socket.send_line(json.dumps(reply).encode())
        signer, verifier = (LineSigner(order.secret, role, handshake) for role in (LEAD, MEMBER))
        link.attach(client.socket, signer, verifier, received)
        return True


class _UnauthenticatedClient:
    def __init__(self, line_socket: LineSocket) -> None:
        self.socket = line_socket
        self.nonce = make_nonce()
        self.connected_at = clock.monotonic()


def _loss_evidence(link: ReliableLink) -> Iterator[str]:
    if link.is_closed or link.reset_s > RECONNECT_S:
        yield "its agent has died, and the node's processes with it"
    elif link.silent_s > link.timeout_s:
        yield f"no message for {clock.duration_text(link.silent_s)}"


def _listen(host: str) -> socket.socket:
    """Listen on that address only, if it belongs to this machine, so that the port is not open to other networks."""
    family, address = _resolve(host)
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    any_address = "::" if family == socket.AF_INET6 else ""
    try:
        sock.bind((address or any_address, 0))
    except OSError:  # the address is that of another machine, which forwards to this one
        sock.bind((any_address, 0))
    sock.listen(128)
    sock.setblocking(False)
    enable_sigio(sock.fileno())
    return sock


def _resolve(host: str) -> tuple[socket.AddressFamily, Optional[str]]:
    """The address; None if a name resolves to the loopback interface, at which other nodes cannot connect."""
    try:
        family, _, _, _, socket_address = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0]
    except OSError:
        return socket.AF_INET, None
    address = str(socket_address[0])
    is_name = address != host.strip("[]")
    return family, None if is_name and ipaddress.ip_address(address.partition("%")[0]).is_loopback else address
