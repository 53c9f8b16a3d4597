"""Connections to the lead that are not authenticated yet: few, for a short time, and of a fixed number of bytes."""

from __future__ import annotations

import random
import socket
from contextlib import suppress
from dataclasses import dataclass, field

from runyard import clock
from runyard.agent.rendezvous.auth import HELLO_BYTES, AuthenticationError, Credentials, Hello, LeadHandshake
from runyard.agent.rendezvous.frame_socket import FrameSocket

MAX_CLIENTS = 64
_TIMEOUT_S = 10.0


@dataclass(eq=False)
class Client:
    socket: FrameSocket
    address: str
    handshake: LeadHandshake
    connected_at: float = field(default_factory=clock.monotonic)


class UnauthenticatedClients:
    """Strangers may connect as often as they like and send any bytes: they are disconnected, and members get in."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._clients: list[Client] = []

    def add(self, sock: socket.socket, address: str) -> None:
        """Send the challenge to a new connection."""
        try:
            client = Client(FrameSocket(sock), address, LeadHandshake(self._credentials))
        except OSError:  # it was reset already
            sock.close()
            return
        self._clients.append(client)
        client.socket.send(client.handshake.challenge)
        if len(self._clients) > MAX_CLIENTS:
            self._disconnect(self._most_expendable())

    def take_authenticated(self) -> list[tuple[Client, Hello]]:
        """The connections whose hello is verified. Others are closed if they sent a wrong one, or none in time."""
        authenticated = []
        for client in list(self._clients):
            hello = client.socket.read_exactly(HELLO_BYTES)
            if hello is not None:
                self._clients.remove(client)
                try:
                    authenticated.append((client, client.handshake.verify(hello)))
                except AuthenticationError:
                    client.socket.close()
            elif client.socket.has_ended or clock.monotonic() > client.connected_at + _TIMEOUT_S:
                self._disconnect(client)
        return authenticated

    def close(self) -> None:
        for client in list(self._clients):
            self._disconnect(client)

    def _most_expendable(self) -> Client:
        """A random connection of the address that has most of them: a host that opens many displaces its own, and
        if it is the host of a member, the member needs only a moment and comes again."""
        addresses = [client.address for client in self._clients]
        busiest = max(addresses, key=addresses.count)
        return random.choice([client for client in self._clients if client.address == busiest])

    def _disconnect(self, client: Client) -> None:
        with suppress(ValueError):
            self._clients.remove(client)
        client.socket.close()
