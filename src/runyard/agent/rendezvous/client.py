"""A member's side of the rendezvous: its link to the lead, reconnected whenever it breaks."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from typing import Any, Optional

from runyard import clock
from runyard.agent.rendezvous.agent_watch import AgentWatch
from runyard.agent.rendezvous.auth import (
    CHALLENGE_BYTES,
    WELCOME_BYTES,
    AuthenticationError,
    Credentials,
    MemberHandshake,
)
from runyard.agent.rendezvous.frame_socket import FrameSocket, enable_sigio
from runyard.agent.rendezvous.messages import FROM_LEAD, Message
from runyard.agent.rendezvous.messaging import RECONNECT_S
from runyard.agent.rendezvous.reliable_link import ReliableLink
from runyard.launch.order import WorkOrder

_START_PHASE_S, _START_PAUSE_S = 5.0, 0.002  # all nodes may be starting at the same time
_PAUSE_S, _MAX_PAUSE_S = 0.1, 3.0
_FIRST_CONNECT_S = 10.0
_MAX_PORT = 65535
_Address = tuple[socket.AddressFamily, Any]


class RendezvousClient:
    def __init__(self, order: WorkOrder, find_lead: Callable[[], str], watch: Optional[AgentWatch] = None) -> None:
        """Connect to the lead as soon as its address is known.

        Args:
            order: The work order of this node.
            find_lead: Returns the lead's address as "host:port", or "" while it is unknown.
            watch: Detects that the lead died before this node was connected.
        """
        self._order, self._find_lead, self._watch = order, find_lead, watch
        self._credentials = Credentials(order.run_id, order.attempt, order.secret)
        self._link = ReliableLink(order.peer_timeout_s, FROM_LEAD)
        self._connecting: Optional[_ConnectionAttempt] = None
        self._created_at = clock.monotonic()
        self._next_attempt_at = 0.0
        self._pause_s = _START_PAUSE_S
        self._resolved: dict[str, _Address] = {}  # the lead's address by its text
        self._refused_at: Optional[float] = None  # time of the first refused connection since the last successful one
        self.connect_error = ""

    def send(self, message_type: str, **values: Any) -> None:
        self._link.send(message_type, **values)

    def send_to(self, node_rank: int, message_type: str, **values: Any) -> None:
        self._link.send(message_type, **values)

    def receive(self) -> list[tuple[int, Message]]:
        if self._connecting is not None:
            self._continue_connecting(self._connecting)
        elif (not self._link.is_up and not self._link.is_closed) or self._link.misses_heartbeats:
            self._connect()
        return [(0, message) for message in self._link.receive()]

    def take_problems(self) -> list[tuple[int, str]]:
        return [(0, problem) for problem in self._link.take_problems()]

    def lost_nodes(self) -> dict[int, str]:
        if self._connecting is not None and self._connecting.handshake is not None:
            return {}  # the lead closes the previous connection in favor of this one
        death = self._watch.death_evidence(0) if self._watch is not None and self.never_connected else ""
        if death:
            return {0: death}
        refused_s = clock.monotonic() - self._refused_at if self._refused_at is not None else 0.0
        # at first the lead may not be listening yet
        refused_limit_s = _FIRST_CONNECT_S if self.never_connected else RECONNECT_S
        if self._link.is_closed or (not self._link.is_up and refused_s > refused_limit_s):
            return {0: "its agent has died"}
        if self._link.invalid_sender:
            return {0: f"its agent was disconnected several times: {self._link.invalid_sender}"}
        if self._link.silent_s > self._link.timeout_s:
            return {0: f"no message for {clock.duration_text(self._link.silent_s)}"}
        return {}

    def misses_heartbeats(self, node_rank: int) -> bool:
        return self._link.misses_heartbeats

    @property
    def never_connected(self) -> bool:
        return self._link.received_at is None

    @property
    def all_acknowledged(self) -> bool:
        return self._link.all_acknowledged

    def close(self) -> None:
        self._link.close()
        if self._connecting is not None:
            self._connecting.close()

    def _connect(self) -> None:
        if clock.monotonic() < self._next_attempt_at:
            return
        self._next_attempt_at = clock.monotonic() + self._pause_s
        self._pause_s = min(self._pause_s * 1.5, _MAX_PAUSE_S)
        lead = self._find_lead()
        if not lead:
            self._pause_s = _START_PAUSE_S if clock.monotonic() < self._created_at + _START_PHASE_S else _PAUSE_S
            return
        try:
            # resolve only once: without a network, a second lookup would block for long
            if lead not in self._resolved:
                self._resolved = {lead: _resolve(lead)}
            self._connecting = _ConnectionAttempt(self._resolved[lead])
        except (OSError, ValueError) as error:
            self._fail(error)

    def _continue_connecting(self, attempt: _ConnectionAttempt) -> None:
        try:
            if self._advance_handshake(attempt):
                self._connecting, self._pause_s, self._refused_at = None, _PAUSE_S, None
            elif clock.monotonic() > attempt.started_at + max(2 * self._link.heartbeat_s, 1.0):
                raise OSError("no response")
        except (OSError, AuthenticationError) as error:
            self._fail(error)

    def _advance_handshake(self, attempt: _ConnectionAttempt) -> bool:
        """Perform the next step if possible. Returns True once the link is connected."""
        if attempt.frame_socket is None and not attempt.connect():
            return False
        frame_socket = attempt.frame_socket
        assert frame_socket is not None
        if attempt.handshake is None:
            challenge = frame_socket.read_exactly(CHALLENGE_BYTES)
            if challenge is not None:
                handshake = MemberHandshake(self._credentials, self._order.node_rank, self._link.received)
                frame_socket.send(handshake.hello(challenge))
                attempt.handshake = handshake
        if attempt.handshake is not None:
            welcome = frame_socket.read_exactly(WELCOME_BYTES)
            if welcome is not None:
                acknowledged = attempt.handshake.verify(welcome)
                frame_socket.start_frames(*attempt.handshake.frame_keys())
                self._link.attach(frame_socket, acknowledged)
                return True
        if frame_socket.has_ended:
            if attempt.handshake is not None:
                raise AuthenticationError("the lead refused this node: another run, another attempt or another secret")
            raise OSError("the connection was closed")
        return False

    def _fail(self, error: Exception) -> None:
        if isinstance(error, ConnectionRefusedError) and self._refused_at is None:
            self._refused_at = clock.monotonic()
        if self._connecting is not None:
            self._connecting.close()
            self._connecting = None
        self.connect_error = (error.strerror if isinstance(error, OSError) else None) or str(error)


class _ConnectionAttempt:
    def __init__(self, address: _Address) -> None:
        """Raises OSError."""
        family, self._address = address
        self.started_at = clock.monotonic()
        self.handshake: Optional[MemberHandshake] = None  # set once the hello was sent
        self.frame_socket: Optional[FrameSocket] = None
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setblocking(False)
        enable_sigio(self._socket.fileno())
        try:
            self.connect()
        except OSError:
            self._socket.close()
            raise

    def connect(self) -> bool:
        """True once connected. Raises OSError if the connection fails."""
        code = self._socket.connect_ex(self._address)
        if code in (errno.EINPROGRESS, errno.EALREADY):
            return False
        if code not in (0, errno.EISCONN):
            raise OSError(code, os.strerror(code))
        self.frame_socket = FrameSocket(self._socket)
        return True

    def close(self) -> None:
        self._socket.close()


def _resolve(address: str) -> _Address:
    """Raises OSError and ValueError."""
    host, _, port = address.rpartition(":")
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and 0 < int(port) <= _MAX_PORT):
        raise ValueError(f"invalid address of the lead: {address[:100]!r}")
    family, _, _, _, socket_address = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
    return family, socket_address
