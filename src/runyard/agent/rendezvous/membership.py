"""Rendezvous: every agent registers with the lead, which broadcasts the list of nodes."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Optional

from runyard import clock
from runyard.agent.rendezvous.client import RendezvousClient
from runyard.agent.rendezvous.messaging import Messaging, NoPeers
from runyard.agent.rendezvous.server import RendezvousServer
from runyard.launch.order import Node, WorkOrder
from runyard.posix import procfs
from runyard.posix.atomic_write import write_text
from runyard.spec.folder import RunFolder
from runyard.spec.json import from_json, to_json

_TIMEOUT_S = 120.0
_START_PHASE_S, _START_POLL_S = 1.0, 0.002  # simulated nodes on one machine start within milliseconds
_POLL_S = 0.02
_REFRESH_S = 1.0


class RendezvousError(Exception):
    """The rendezvous failed. The message names the nodes that did not register."""


@dataclass(frozen=True)
class Registration:
    """A node as described by its own agent, which knows best how it can be reached."""

    node: Node
    ports: tuple[str, ...] = ()
    host: str = ""  # host name of the machine


def open_messaging(order: WorkOrder, folder: RunFolder) -> Messaging:
    """Connect to the other agents; the lead starts to listen. Raises OSError, or RendezvousError without a secret."""
    if len(order.nodes) < 2:
        return NoPeers()
    if not order.secret:
        raise RendezvousError("the work order has no secret for authentication between the agents of its nodes")
    if order.node_rank:
        return RendezvousClient(order, _LeadFile(order, folder).read)
    server = RendezvousServer(order)
    write_text(folder.lead, json.dumps({"place": server.address, "attempt": order.attempt}))
    return server


class Rendezvous:
    """``registrations`` is None until all nodes have registered."""

    def __init__(self, order: WorkOrder, messaging: Messaging, names: list[str]) -> None:
        self._order, self._messaging, self._names = order, messaging, names
        self._registered: dict[int, Registration] = {}
        self.registrations: Optional[list[Registration]] = None

    def register(self, node: Node, ports: tuple[str, ...]) -> None:
        registration = Registration(node, ports, socket.gethostname())
        if self._order.node_rank:
            self._messaging.send(
                "register", registration=to_json(registration), boot_id=procfs.boot_id(), now=clock.now()
            )
        else:
            self._add(0, registration)

    def handle(self, node_rank: int, message: dict[str, Any]) -> None:
        if message["type"] == "register":
            self._add(node_rank, from_json(Registration, message["registration"]))
        elif message["type"] == "nodes":
            self.registrations = [from_json(Registration, value) for value in message["registrations"]]

    def wait(self, pause: Callable[[float], bool], timeout_s: float = _TIMEOUT_S) -> Optional[list[Registration]]:
        """All registrations in the order of the nodes; None if ``pause`` returns False because the run is to end."""
        started_at = clock.monotonic()
        while self.registrations is None:
            now = clock.monotonic()
            # a connected member waits for the lead, which reports the missing nodes
            if now > started_at + timeout_s and (self._order.node_rank == 0 or self._messaging.never_connected):
                raise RendezvousError(self._timeout_message(timeout_s))
            if not pause(_START_POLL_S if now < started_at + _START_PHASE_S else _POLL_S):
                return None
        return self.registrations

    def _add(self, node_rank: int, registration: Registration) -> None:
        self._registered[node_rank] = registration
        if len(self._registered) == len(self._names):
            self.registrations = [self._registered[number] for number in range(len(self._names))]
            self._messaging.send("nodes", registrations=[to_json(value) for value in self.registrations])

    def _timeout_message(self, timeout_s: float) -> str:
        if self._messaging.never_connected:
            error = self._messaging.connect_error or "its address is unknown"
            return f"could not connect to the lead, {self._names[0]}, within {timeout_s:.0f} s: {error}"
        missing = ", ".join(name for number, name in enumerate(self._names) if number not in self._registered)
        return f"not all nodes registered within {timeout_s:.0f} s; missing: {missing}"


class _LeadFile:
    def __init__(self, order: WorkOrder, folder: RunFolder) -> None:
        self._order, self._folder = order, folder
        self._refresh_at = clock.monotonic() + _REFRESH_S

    def read(self) -> str:
        """The lead's address; "" while it is unknown."""
        if self._order.lead:
            return self._order.lead
        try:
            lead = json.loads(self._folder.lead.read_bytes())
        except (OSError, ValueError):
            self._refresh_folder()
            return ""
        # the file may be from an earlier attempt
        return str(lead["place"]) if lead["attempt"] == self._order.attempt else ""

    def _refresh_folder(self) -> None:
        """Change the folder: a network file system caches for half a minute that a file is missing, unless its folder
        changes."""
        if clock.monotonic() < self._refresh_at:
            return
        self._refresh_at = clock.monotonic() + _REFRESH_S
        file = self._folder.root / f"lead.{self._order.node_rank}.look"
        with suppress(OSError):
            file.touch()
            file.unlink()
