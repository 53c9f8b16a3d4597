"""How the agents of one run find each other: each says to the lead that it is there, and the lead tells all of all."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Optional

from runyard import clock
from runyard.agent.host_identity import MACHINE
from runyard.agent.rendezvous.client import Dial
from runyard.agent.rendezvous.messaging import Alone, Talk
from runyard.agent.rendezvous.server import Switchboard
from runyard.launch.order import Node, WorkOrder
from runyard.posix.atomic_write import write_text
from runyard.spec.folder import RunFolder
from runyard.spec.json import from_json, to_json

_PATIENCE_S = 120.0
_AT_FIRST_S, _QUICK_LOOK_S = 1.0, 0.002  # all nodes of a run that is played here start within milliseconds
_LOOK_S = 0.02
_NUDGE_S = 1.0


class Missing(Exception):
    """Its text names the nodes that did not come."""


@dataclass(frozen=True)
class Hello:
    """What a node says of itself; it knows better than others where it can be reached."""

    node: Node
    ports: tuple[str, ...] = ()
    host: str = ""  # its machine's own name


def line_of(order: WorkOrder, folder: RunFolder) -> Talk:
    """The way to the other agents; the lead's is open from here on. Raises OSError, or Missing without a secret."""
    if len(order.nodes) < 2:
        return Alone()
    if not order.secret:
        raise Missing("the order has no secret by which the agents of its nodes could know each other")
    if order.node_rank:
        return Dial(order, _LeadFile(order, folder).read)
    switchboard = Switchboard(order)
    write_text(folder.lead, json.dumps({"place": switchboard.place, "attempt": order.attempt}))
    return switchboard


class Meeting:
    """``heard`` is told of hellos and of the world; ``world`` is there when everybody is."""

    def __init__(self, order: WorkOrder, talk: Talk, names: list[str]) -> None:
        self._order, self._talk, self._names = order, talk, names
        self._hellos: dict[int, Hello] = {}
        self.world: Optional[list[Hello]] = None

    def begin(self, node: Node, ports: tuple[str, ...]) -> None:
        hello = Hello(node, ports, socket.gethostname())
        if self._order.node_rank:
            self._talk.say("hello", hello=to_json(hello), machine=MACHINE, now=clock.now())
        else:
            self._came(0, hello)

    def heard(self, node_rank: int, said: dict[str, Any]) -> None:
        if said["do"] == "hello":
            self._came(node_rank, from_json(Hello, said["hello"]))
        elif said["do"] == "world":
            self.world = [from_json(Hello, one) for one in said["hellos"]]

    def wait(self, pause: Callable[[float], bool], patience_s: float = _PATIENCE_S) -> Optional[list[Hello]]:
        """What everybody said, in order of the nodes; None when ``pause`` says that there is nothing to wait for."""
        began = clock.monotonic()
        deadline = began + patience_s
        while self.world is None:
            if clock.monotonic() > deadline and self._is_mine_to_say:
                raise Missing(self._complaint(patience_s))
            if not pause(_QUICK_LOOK_S if clock.monotonic() < began + _AT_FIRST_S else _LOOK_S):
                return None
        return self.world

    def _came(self, node_rank: int, hello: Hello) -> None:
        self._hellos[node_rank] = hello
        if len(self._hellos) == len(self._names):
            self.world = [self._hellos[number] for number in range(len(self._names))]
            self._talk.say("world", hellos=[to_json(one) for one in self.world])

    @property
    def _is_mine_to_say(self) -> bool:
        """A member that has a line is told by the lead who is missing."""
        return not isinstance(self._talk, Dial) or self._talk.is_new

    def _complaint(self, patience_s: float) -> str:
        if isinstance(self._talk, Dial) and self._talk.is_new:
            why = self._talk.trouble or "it has not said where it listens"
            return f"the lead, {self._names[0]}, was not reached within {patience_s:.0f} s: {why}"
        missing = ", ".join(name for number, name in enumerate(self._names) if number not in self._hellos)
        return f"not all nodes came within {patience_s:.0f} s; missing: {missing}"


class _LeadFile:
    def __init__(self, order: WorkOrder, folder: RunFolder) -> None:
        self._order, self._folder = order, folder
        self._nudge_at = clock.monotonic() + _NUDGE_S

    def read(self) -> str:
        """Where the lead listens; "" as long as it has not said so."""
        if self._order.lead:
            return self._order.lead
        try:
            said = json.loads(self._folder.lead.read_bytes())
        except (OSError, ValueError):
            self._nudge()
            return ""
        # of another attempt: it is where an earlier lead was
        return str(said["place"]) if said["attempt"] == self._order.attempt else ""

    def _nudge(self) -> None:
        """A network's file system remembers for half a minute that a file was not there, unless its folder changes."""
        if clock.monotonic() < self._nudge_at:
            return
        self._nudge_at = clock.monotonic() + _NUDGE_S
        nudge = self._folder.root / f"lead.{self._order.node_rank}.look"
        with suppress(OSError):
            nudge.touch()
            nudge.unlink()
