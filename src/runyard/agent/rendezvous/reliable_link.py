"""Reliable, ordered messaging between two agents; survives reconnects.

Messages are numbered. Those that the other side has not acknowledged are sent again over the next connection, and
duplicates are ignored: nothing is lost or repeated when a network is interrupted.
"""

from __future__ import annotations

import json
from collections import deque
from typing import Any, Optional

from runyard import clock
from runyard.agent.rendezvous.auth import LineSigner
from runyard.agent.rendezvous.line_socket import LineSocket

Message = dict[str, Any]  # "type" and further values


class ReliableLink:
    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self.heartbeat_s = timeout_s / 9
        self.received = 0  # number of the last message from the other side
        self.received_at: Optional[float] = None  # time of the last line, including heartbeats; None: never
        self._sent = 0
        self._unacknowledged: deque[tuple[int, Message]] = deque()
        self._socket: Optional[LineSocket] = None
        self._signer: Optional[LineSigner] = None
        self._verifier: Optional[LineSigner] = None
        self._last_sent_at = 0.0
        self._ended_at: Optional[float] = None

    def send(self, message_type: str, **values: Any) -> None:
        self._sent += 1
        self._unacknowledged.append((self._sent, {"type": message_type, **values}))
        self._write(*self._unacknowledged[-1])

    def attach(self, line_socket: LineSocket, signer: LineSigner, verifier: LineSigner, acknowledged: int) -> None:
        """Use a new connection instead of the previous one."""
        self.close()
        self._socket, self._signer, self._verifier = line_socket, signer, verifier
        self.received_at, self._ended_at = clock.monotonic(), None
        self._acknowledge(acknowledged)
        for number, message in self._unacknowledged:
            self._write(number, message)

    def receive(self) -> list[Message]:
        """The messages since the last call, each once and in order."""
        if self._socket is None or self._verifier is None:
            return []
        self._socket.flush()
        messages = []
        for line in iter(self._socket.read_line, None):
            text = self._verifier.verify(line)
            if text is None:
                self._socket.close()
                break
            number, acknowledged, message = json.loads(text)
            self.received_at = clock.monotonic()
            self._acknowledge(acknowledged)
            if number == self.received + 1:
                self.received = number
                messages.append(message)
        now = clock.monotonic()
        if messages or now >= self._last_sent_at + self.heartbeat_s:
            self._write(0, {})  # an acknowledgement, and a heartbeat
        if self._socket.has_ended and self._ended_at is None:
            self._ended_at = now
        return messages

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()

    @property
    def all_acknowledged(self) -> bool:
        return not self._unacknowledged

    @property
    def is_up(self) -> bool:
        return self._socket is not None and not self._socket.has_ended

    @property
    def is_closed(self) -> bool:
        """True if the other side has ended: agents do not close a connection before their last message."""
        return self._socket is not None and self._socket.is_closed

    @property
    def reset_s(self) -> float:
        """Seconds since the connection was reset; 0 if it was not."""
        if self._socket is None or not self._socket.is_reset or self._ended_at is None:
            return 0.0
        return clock.monotonic() - self._ended_at

    @property
    def silent_s(self) -> float:
        return clock.monotonic() - self.received_at if self.received_at is not None else 0.0

    @property
    def misses_heartbeats(self) -> bool:
        """True if one or two heartbeats are overdue, so that the connection may be broken."""
        return self.silent_s > 2.5 * self.heartbeat_s

    def _write(self, number: int, message: Message) -> None:
        if self._socket is not None and self._signer is not None and not self._socket.has_ended:
            self._last_sent_at = clock.monotonic()
            self._socket.send_line(self._signer.sign(json.dumps([number, self.received, message]).encode()))

    def _acknowledge(self, number: int) -> None:
        while self._unacknowledged and self._unacknowledged[0][0] <= number:
            self._unacknowledged.popleft()
