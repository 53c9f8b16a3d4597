"""A member's end: its line to the lead, dialled again whenever it breaks."""

from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Callable
from typing import Any, Optional

from runyard import clock
from runyard.agent.rendezvous.auth import LEAD, MEMBER, Claim, Seals, is_proof, nonce, proof
from runyard.agent.rendezvous.line_socket import Connection, signal_when_ready
from runyard.agent.rendezvous.messaging import REDIAL_S
from runyard.agent.rendezvous.reliable_link import Link, Message
from runyard.launch.order import WorkOrder

_FIRST_S, _FIRST_PAUSE_S = 5.0, 0.002  # as long as all nodes may be starting in the same moment
_AGAIN_S = 0.1
_SLOWEST_S = 3.0
_LONGEST = 4096
_NEVER_MET_S = 10.0
_Place = tuple[socket.AddressFamily, Any]


class Dial:
    def __init__(self, order: WorkOrder, find: Callable[[], str]) -> None:
        """``find`` says where the lead is, as "host:port", or "" as long as that is not known."""
        self._order, self._find = order, find
        self._link = Link(order.patience_s)
        self._call: Optional[_Call] = None
        self._since = clock.monotonic()
        self._next_at = 0.0
        self._pause_s = _FIRST_PAUSE_S
        self._place: Optional[_Place] = None
        self._refused_at: Optional[float] = None  # since when nobody listens there
        self.trouble = ""  # why there has never been a line, as far as that is known

    def say(self, do: str, **facts: Any) -> None:
        self._link.say(do, **facts)

    def say_to(self, node_rank: int, do: str, **facts: Any) -> None:
        self._link.say(do, **facts)

    def look(self) -> list[tuple[int, Message]]:
        if self._call is not None:
            self._go_on(self._call)
        elif (not self._link.is_up and not self._link.is_closed) or self._link.is_quiet:
            self._dial()
        return [(0, message) for message in self._link.look()]

    def lost(self) -> dict[int, str]:
        if self._call is not None and self._call.is_answered:
            return {}  # the line before this one was closed to make way for it
        refused_s = clock.monotonic() - self._refused_at if self._refused_at is not None else 0.0
        # at first it may be that it does not listen yet
        if self._link.is_closed or (not self._link.is_up and refused_s > (_NEVER_MET_S if self.is_new else REDIAL_S)):
            return {0: "its agent is gone"}
        if self._link.silent_s > self._link.patience_s:
            return {0: f"nothing was heard from it for {clock.duration_text(self._link.silent_s)}"}
        return {}

    def is_quiet(self, node_rank: int) -> bool:
        return self._link.is_quiet

    @property
    def is_new(self) -> bool:
        """There has never been a line to the lead."""
        return self._link.heard_at is None

    @property
    def is_delivered(self) -> bool:
        return self._link.is_delivered

    def close(self) -> None:
        self._link.close()
        if self._call is not None:
            self._call.close()

    def _dial(self) -> None:
        if clock.monotonic() < self._next_at:
            return
        self._next_at = clock.monotonic() + self._pause_s
        self._pause_s = min(self._pause_s * 1.5, _SLOWEST_S)
        found = self._find()
        if not found:
            # it is written down any moment
            self._pause_s = _FIRST_PAUSE_S if clock.monotonic() < self._since + _FIRST_S else _AGAIN_S
            return
        try:
            # looked up once: without a network, the next answer would be long in coming
            self._place = self._place or _resolved(found)
            self._call = _Call(self._place)
        except (OSError, ValueError) as error:
            self._failed(error)

    def _go_on(self, call: _Call) -> None:
        try:
            if self._shake_hands(call):
                self._call, self._pause_s, self._refused_at = None, _AGAIN_S, None
            elif clock.monotonic() > call.since + max(2 * self._link.beat_s, 1.0):
                raise OSError("it did not answer")
        except (OSError, ValueError, KeyError, TypeError) as error:
            self._failed(error)

    def _shake_hands(self, call: _Call) -> bool:
        """A step further, if there is one to take. Whether all is done."""
        if call.connection is None and not call.connect():
            return False
        assert call.connection is not None
        order = self._order
        line = call.connection.take(_LONGEST)
        if line is not None and call.claim is None:
            call.claim = Claim(order.run_id, order.attempt, order.node_rank, str(json.loads(line)["nonce"]), nonce())
            shown = proof(order.secret, MEMBER, call.claim, self._link.heard)
            answer = {"node": order.node_rank, "heard": self._link.heard, "nonce": call.claim.member_nonce}
            call.connection.put(json.dumps({**answer, "proof": shown}).encode())
            line = call.connection.take(_LONGEST)
        if line is not None and call.claim is not None:
            said = json.loads(line)
            if "refused" in said:
                raise ValueError(f"it does not know this node: {said['refused']}")
            heard = int(said["heard"])
            if not is_proof(said["proof"], order.secret, LEAD, call.claim, heard):
                raise ValueError("whoever answers there is not the lead of this run")
            ours, theirs = Seals(order.secret, MEMBER, call.claim), Seals(order.secret, LEAD, call.claim)
            self._link.attach(call.connection, ours, theirs, heard)
            return True
        if call.connection.is_over:
            raise OSError("it hung up")
        return False

    def _failed(self, error: Exception) -> None:
        if isinstance(error, ConnectionRefusedError) and self._refused_at is None:
            self._refused_at = clock.monotonic()
        if self._call is not None:
            self._call.close()
            self._call = None
        self.trouble = (error.strerror if isinstance(error, OSError) else None) or str(error)


class _Call:
    """On its way to being a connection."""

    def __init__(self, place: _Place) -> None:
        """Raises OSError."""
        family, self._address = place
        self.since = clock.monotonic()
        self.claim: Optional[Claim] = None
        self.connection: Optional[Connection] = None
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setblocking(False)
        signal_when_ready(self._socket.fileno())
        try:
            self.connect()
        except OSError:
            self._socket.close()
            raise

    @property
    def is_answered(self) -> bool:
        return self.claim is not None

    def connect(self) -> bool:
        """Whether it is connected by now; raises OSError when it cannot be."""
        code = self._socket.connect_ex(self._address)
        if code in (errno.EINPROGRESS, errno.EALREADY):
            return False
        if code not in (0, errno.EISCONN):
            raise OSError(code, os.strerror(code))
        self.connection = Connection(self._socket)
        return True

    def close(self) -> None:
        self._socket.close()


def _resolved(place: str) -> _Place:
    host, _, port = place.rpartition(":")
    family, _, _, _, address = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
    return family, address
