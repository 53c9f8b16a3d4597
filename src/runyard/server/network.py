"""What the server asks of the process that it is in: to be reachable from the network, or not to be."""

from __future__ import annotations

from typing import Protocol

from runyard.wire.yard import ListenOptions, StudioAddress


class Network(Protocol):
    @property
    def address(self) -> StudioAddress | None: ...

    def open(self, wanted: ListenOptions) -> StudioAddress: ...

    def close(self) -> None: ...
