"""A member's side of the rendezvous: its link to the lead, reconnected whenever it breaks."""

from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Callable
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

_START_PHASE_S, _START_PAUSE_S = 5.0, 0.002  # all nodes may be starting at the same time
_PAUSE_S, _MAX_PAUSE_S = 0.1, 3.0
_FIRST_CONNECT_S = 10.0
_MAX_LINE_BYTES = 4096
_Address = tuple[socket.AddressFamily, Any]


class RendezvousClient:
    def __init__(self, order: WorkOrder, find_lead: Callable[[], str]) -> None:
        """``find_lead`` returns the lead's address as "host:port", or "" while it is unknown."""
        self._order, self._find_lead = order, find_lead
        self._link = ReliableLink(order.peer_timeout_s)
        self._connecting: Optional[_ConnectionAttempt] = None
        self._created_at = clock.monotonic()
        self._next_attempt_at = 0.0
        self._pause_s = _START_PAUSE_S
        self._address: Optional[_Address] = None
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

    def lost_nodes(self) -> dict[int, str]:
        if self._connecting is not None and self._connecting.handshake is not None:
            return {}  # the lead closes the previous connection in favor of this one
        refused_s = clock.monotonic() - self._refused_at if self._refused_at is not None else 0.0
        # at first the lead may not be listening yet
        refused_limit_s = _FIRST_CONNECT_S if self.never_connected else RECONNECT_S
        if self._link.is_closed or (not self._link.is_up and refused_s > refused_limit_s):
            return {0: "its agent has died"}
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
            self._address = self._address or _resolve(lead)
            self._connecting = _ConnectionAttempt(self._address)
        except (OSError, ValueError) as error:
            self._fail(error)

    def _continue_connecting(self, attempt: _ConnectionAttempt) -> None:
        try:
            if self._advance_handshake(attempt):
                self._connecting, self._pause_s, self._refused_at = None, _PAUSE_S, None
            elif clock.monotonic() > attempt.started_at + max(2 * self._link.heartbeat_s, 1.0):
                raise OSError("no response")
        except (OSError, ValueError, KeyError, TypeError) as error:
            self._fail(error)

    def _advance_handshake(self, attempt: _ConnectionAttempt) -> bool:
        """Perform the next step if possible. Returns True once the link is connected."""
        if attempt.line_socket is None and not attempt.connect():
            return False
        assert attempt.line_socket is not None
        order = self._order
        line = attempt.line_socket.read_line(_MAX_LINE_BYTES)
        if line is not None and attempt.handshake is None:
            lead_nonce, nonce, received = str(json.loads(line)["nonce"]), make_nonce(), self._link.received
            attempt.handshake = Handshake(order.run_id, order.attempt, order.node_rank, lead_nonce, nonce)
            proof = make_proof(order.secret, MEMBER, attempt.handshake, received)
            request = {"node": order.node_rank, "received": received, "nonce": nonce, "proof": proof}
            attempt.line_socket.send_line(json.dumps(request).encode())
            line = attempt.line_socket.read_line(_MAX_LINE_BYTES)
        if line is not None and attempt.handshake is not None:
            reply = json.loads(line)
            if "refused" in reply:
                raise ValueError(f"the lead refused this node: {reply['refused']}")
            received = int(reply["received"])
            if not verify_proof(reply["proof"], order.secret, LEAD, attempt.handshake, received):
                raise ValueError("the process at that address is not the lead of this run")
            signer, verifier = (LineSigner(order.secret, role, attempt.handshake) for role in (MEMBER, LEAD))
            self._link.attach(attempt.line_socket, signer, verifier, received)
            return True
        if attempt.line_socket.has_ended:
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
        self.handshake: Optional[Handshake] = None
        self.line_socket: Optional[LineSocket] = None
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
        self.line_socket = LineSocket(self._socket)
        return True

    def close(self) -> None:
        self._socket.close()


def _resolve(address: str) -> _Address:
    host, _, port = address.rpartition(":")
    family, _, _, _, socket_address = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
    return family, socket_address
