"""Reliable, ordered messaging between two agents; survives reconnects.

Messages are numbered. Those that the other side has not acknowledged are sent again over the next connection, and
duplicates are ignored: nothing is lost or repeated when a network is interrupted.
"""

from __future__ import annotations

import json
from collections import deque
from typing import Any, Optional

from runyard import clock
from runyard.agent.rendezvous.frame_socket import FrameSocket
from runyard.agent.rendezvous.messages import InvalidMessage, Message, Schema, parse_frame

_MAX_REJECTIONS = 3  # an agent that sends an invalid message sends it again over the next connection


class ReliableLink:
    def __init__(self, timeout_s: float, schema: Schema) -> None:
        """``schema``: the messages that the other side may send."""
        self.timeout_s = timeout_s
        self.heartbeat_s = timeout_s / 9
        self.received = 0  # number of the last message from the other side
        self.received_at: Optional[float] = None  # time of the last frame, including heartbeats; None: never
        self._schema = schema
        self._sent = 0
        self._unacknowledged: deque[tuple[int, Message]] = deque()
        self._socket: Optional[FrameSocket] = None
        self._last_sent_at = 0.0
        self._ended_at: Optional[float] = None
        self._rejections = self._problem_count = 0
        self._new_problems: list[str] = []
        self._last_problem = ""

    def send(self, message_type: str, **values: Any) -> None:
        self._sent += 1
        self._unacknowledged.append((self._sent, {"type": message_type, **values}))
        self._write(*self._unacknowledged[-1])

    def attach(self, frame_socket: FrameSocket, acknowledged: int) -> None:
        """Use a new authenticated connection instead of the previous one."""
        self.close()
        self._socket = frame_socket
        self.received_at, self._ended_at = clock.monotonic(), None
        self._acknowledge(acknowledged)
        for number, message in self._unacknowledged:
            self._write(number, message)

    def receive(self) -> list[Message]:
        """The messages since the last call, each once and in order. An invalid one ends the connection."""
        if self._socket is None:
            return []
        self._socket.flush()
        messages = []
        for payload in iter(self._socket.read_frame, None):
            try:
                number, acknowledged, message = parse_frame(payload, self._schema)
            except InvalidMessage as error:
                self._rejections += 1
                self._socket.reject(f"it sent an invalid message: {error}")
                break
            self.received_at = clock.monotonic()
            self._acknowledge(acknowledged)
            if message is not None and number == self.received + 1:
                self.received = number
                messages.append(message)
        if self._socket.problem:
            self._note_problem(self._socket.problem)
            self._socket.problem = ""
        now = clock.monotonic()
        if messages or now >= self._last_sent_at + self.heartbeat_s:
            self._write(0, {})  # an acknowledgement, and a heartbeat
        if self._socket.has_ended and self._ended_at is None:
            self._ended_at = now
        return messages

    def take_problems(self) -> list[str]:
        """Reasons for which connections were ended on this side since the last call."""
        problems, self._new_problems = self._new_problems, []
        return problems

    @property
    def invalid_sender(self) -> str:
        """Description of the last invalid message, if the other side has sent several; "" otherwise."""
        return self._last_problem if self._rejections >= _MAX_REJECTIONS else ""

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

    def _note_problem(self, problem: str) -> None:
        self._last_problem = problem
        if self._problem_count < _MAX_REJECTIONS:  # the others are repetitions
            self._new_problems.append(problem)
        self._problem_count += 1

    def _write(self, number: int, message: Message) -> None:
        if self._socket is not None and not self._socket.has_ended:
            self._last_sent_at = clock.monotonic()
            self._socket.send_frame(json.dumps([number, self.received, message]).encode())

    def _acknowledge(self, number: int) -> None:
        while self._unacknowledged and self._unacknowledged[0][0] <= number:
            self._unacknowledged.popleft()
