"""Rendezvous: every agent registers with the lead, which broadcasts the list of nodes."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Optional

from runyard import clock
from runyard.agent.rendezvous.agent_watch import AgentWatch, refresh_folder
from runyard.agent.rendezvous.client import RendezvousClient
from runyard.agent.rendezvous.messaging import Messaging, NoPeers
from runyard.agent.rendezvous.server import RendezvousServer
from runyard.launch.order import Node, WorkOrder
from runyard.launch.plan import ports_needed
from runyard.posix import procfs
from runyard.posix.atomic_write import write_text
from runyard.posix.regular_file import read_regular
from runyard.spec.folder import RunFolder
from runyard.spec.json import from_json, to_json
from runyard.spec.strict_json import parse_json

_TIMEOUT_S = 120.0
_START_PHASE_S, _START_POLL_S = 1.0, 0.002  # simulated nodes on one machine start within milliseconds
_POLL_S = 0.02
_REFRESH_S = 1.0
_MAX_LEAD_BYTES = 4096


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
    watch = AgentWatch(order, folder)
    if order.node_rank:
        return RendezvousClient(order, _LeadFile(order, folder).read, watch)
    server = RendezvousServer(order, watch)
    write_text(folder.lead, json.dumps({"place": server.address, "attempt": order.attempt}))
    return server


class Rendezvous:
    """``registrations`` is None until all nodes have registered."""

    def __init__(self, order: WorkOrder, messaging: Messaging, names: list[str]) -> None:
        self._order, self._messaging, self._names = order, messaging, names
        self._registered: dict[int, Registration] = {}
        self._misfit = ""  # description of a registration that does not fit the run
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
            registration = self._read(node_rank, message["registration"])
            if registration is not None:
                self._add(node_rank, registration)
        elif message["type"] == "nodes":
            registrations = [self._read(number, value) for number, value in enumerate(message["registrations"])]
            if None not in registrations and len(registrations) == len(self._names):
                self.registrations = [value for value in registrations if value is not None]
            else:
                self._misfit = self._misfit or f"the lead sent {len(registrations)} nodes, expected {len(self._names)}"

    def wait(self, pause: Callable[[float], bool], timeout_s: float = _TIMEOUT_S) -> Optional[list[Registration]]:
        """All registrations in the order of the nodes; None if ``pause`` returns False because the run is to end."""
        started_at = clock.monotonic()
        while self.registrations is None:
            now = clock.monotonic()
            if self._misfit:
                raise RendezvousError(self._misfit)
            # a connected member waits for the lead, which reports the missing nodes
            if now > started_at + timeout_s and (self._order.node_rank == 0 or self._messaging.never_connected):
                raise RendezvousError(self._timeout_message(timeout_s))
            if not pause(_START_POLL_S if now < started_at + _START_PHASE_S else _POLL_S):
                return None
        return self.registrations

    def _read(self, node_rank: int, value: Any) -> Optional[Registration]:
        """None if the registration does not have the ports that its processes need."""
        registration = from_json(Registration, value)
        expected = ports_needed(self._order.launch, len(self._names), node_rank)
        if len(registration.ports) == expected:
            return registration
        name = self._names[node_rank] if node_rank < len(self._names) else f"node {node_rank}"
        self._misfit = f"{name} registered {len(registration.ports)} ports, expected {expected}"
        return None

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
            lead = parse_json(read_regular(self._folder.lead, _MAX_LEAD_BYTES), max_bytes=_MAX_LEAD_BYTES)
        except (OSError, ValueError):
            lead = None
        # the file may be from an earlier attempt
        if isinstance(lead, dict) and lead.get("attempt") == self._order.attempt:
            return str(lead.get("place", ""))
        if clock.monotonic() >= self._refresh_at:
            self._refresh_at = clock.monotonic() + _REFRESH_S
            refresh_folder(self._folder, self._order.node_rank)
        return ""
