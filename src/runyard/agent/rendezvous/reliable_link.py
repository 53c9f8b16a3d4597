"""What one agent says to another and hears from it, over as many connections as that takes.

Each message has a number. What the other side did not say it heard is said again over the next connection, and what
comes a second time is passed over: nothing is lost or doubled when a network is cut.
"""

from __future__ import annotations

import json
from collections import deque
from typing import Any, Optional

from runyard import clock
from runyard.agent.rendezvous.auth import Seals
from runyard.agent.rendezvous.line_socket import Connection

Message = dict[str, Any]  # with "do", the verb


class Link:
    def __init__(self, patience_s: float) -> None:
        self.patience_s = patience_s
        self.beat_s = patience_s / 9
        self.heard = 0  # the number of the last message from there
        self.heard_at: Optional[float] = None  # anything at all; None: never
        self._said = 0
        self._unheard: deque[tuple[int, Message]] = deque()
        self._connection: Optional[Connection] = None
        self._ours: Optional[Seals] = None
        self._theirs: Optional[Seals] = None
        self._beaten_at = 0.0
        self._over_at: Optional[float] = None

    def say(self, do: str, **facts: Any) -> None:
        self._said += 1
        self._unheard.append((self._said, {"do": do, **facts}))
        self._put(self._said, self._unheard[-1][1])

    def attach(self, connection: Connection, ours: Seals, theirs: Seals, they_heard: int) -> None:
        """A new connection takes the place of the one before."""
        if self._connection is not None:
            self._connection.close()
        self._connection, self._ours, self._theirs = connection, ours, theirs
        self.heard_at, self._over_at = clock.monotonic(), None
        self._forget(they_heard)
        for number, message in self._unheard:
            self._put(number, message)

    def look(self) -> list[Message]:
        """What came since, each message once and in order."""
        if self._connection is None or self._theirs is None:
            return []
        self._connection.flush()
        found = []
        for line in iter(self._connection.take, None):
            text = self._theirs.open(line)
            if text is None:
                self._connection.close()
                break
            number, they_heard, message = json.loads(text)
            self.heard_at = clock.monotonic()
            self._forget(they_heard)
            if number == self.heard + 1:
                self.heard = number
                found.append(message)
        now = clock.monotonic()
        if found or now >= self._beaten_at + self.beat_s:  # that it was heard, and that we are here
            self._put(0, {})
        if self._connection.is_over and self._over_at is None:
            self._over_at = now
        return found

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    @property
    def is_delivered(self) -> bool:
        """Everything that was said has been heard."""
        return not self._unheard

    @property
    def is_up(self) -> bool:
        return self._connection is not None and not self._connection.is_over

    @property
    def is_closed(self) -> bool:
        """By the other side's end: nobody closes who has not said goodbye."""
        return self._connection is not None and self._connection.is_closed

    @property
    def reset_s(self) -> float:
        """How long ago the connection was reset; 0 if it was not."""
        if self._connection is None or not self._connection.is_reset or self._over_at is None:
            return 0.0
        return clock.monotonic() - self._over_at

    @property
    def silent_s(self) -> float:
        return clock.monotonic() - self.heard_at if self.heard_at is not None else 0.0

    @property
    def is_quiet(self) -> bool:
        """Something may be wrong: a beat or two are missing."""
        return self.silent_s > 2.5 * self.beat_s

    def _put(self, number: int, message: Message) -> None:
        if self._connection is not None and self._ours is not None and not self._connection.is_over:
            self._beaten_at = clock.monotonic()
            self._connection.put(self._ours.seal(json.dumps([number, self.heard, message]).encode()))

    def _forget(self, heard: int) -> None:
        while self._unheard and self._unheard[0][0] <= heard:
            self._unheard.popleft()
