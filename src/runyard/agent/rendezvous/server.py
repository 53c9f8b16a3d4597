"""The lead's side of the rendezvous: it listens, and every other node has one link to it."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator
from typing import Any, Optional

from runyard import clock
from runyard.agent.rendezvous.agent_watch import AgentWatch
from runyard.agent.rendezvous.auth import Credentials, Hello
from runyard.agent.rendezvous.frame_socket import enable_sigio
from runyard.agent.rendezvous.messages import FROM_MEMBER, Message
from runyard.agent.rendezvous.messaging import RECONNECT_S
from runyard.agent.rendezvous.reliable_link import ReliableLink
from runyard.agent.rendezvous.unauthenticated import Client, UnauthenticatedClients
from runyard.launch.order import WorkOrder

_BACKLOG = 1024
_MAX_ACCEPTS = 256  # in one turn: a flood of connections must not keep the lead from its other work


class RendezvousServer:
    never_connected = False
    connect_error = ""

    def __init__(self, order: WorkOrder, watch: Optional[AgentWatch] = None) -> None:
        """``watch`` detects agents that died before they connected. Raises OSError if no port is available."""
        self._watch = watch
        self._links = {
            node_rank: ReliableLink(order.peer_timeout_s, FROM_MEMBER) for node_rank in range(1, len(order.nodes))
        }
        self._unauthenticated = UnauthenticatedClients(Credentials(order.run_id, order.attempt, order.secret))
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
        for client, hello in self._unauthenticated.take_authenticated():
            self._admit(client, hello)
        return [(node_rank, message) for node_rank, link in self._links.items() for message in link.receive()]

    def take_problems(self) -> list[tuple[int, str]]:
        return [(node_rank, problem) for node_rank, link in self._links.items() for problem in link.take_problems()]

    def lost_nodes(self) -> dict[int, str]:
        return {
            node_rank: evidence
            for node_rank, link in self._links.items()
            for evidence in self._loss_evidence(node_rank, link)
        }

    def misses_heartbeats(self, node_rank: int) -> bool:
        return self._links[node_rank].misses_heartbeats

    @property
    def all_acknowledged(self) -> bool:
        return all(link.all_acknowledged for link in self._links.values())

    def close(self) -> None:
        self._listener.close()
        for link in self._links.values():
            link.close()
        self._unauthenticated.close()

    def _accept(self) -> None:
        for _ in range(_MAX_ACCEPTS):
            try:
                sock, address = self._listener.accept()
            except OSError:  # there is none, it was closed already, or there are too many open files
                return
            self._unauthenticated.add(sock, str(address[0]))

    def _admit(self, client: Client, hello: Hello) -> None:
        link = self._links.get(hello.node_rank)
        if link is None:
            client.socket.close()
            return
        client.socket.send(client.handshake.welcome(link.received))
        client.socket.start_frames(*client.handshake.frame_keys())
        link.attach(client.socket, hello.received)

    def _loss_evidence(self, node_rank: int, link: ReliableLink) -> Iterator[str]:
        if link.received_at is None:
            death = self._watch.death_evidence(node_rank) if self._watch is not None else ""
            if death:
                yield death
        elif link.is_closed or link.reset_s > RECONNECT_S:
            yield "its agent has died, and the node's processes with it"
        elif link.invalid_sender:
            yield f"its agent was disconnected several times: {link.invalid_sender}"
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
    sock.listen(_BACKLOG)
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
