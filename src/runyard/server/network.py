"""The TCP listener as the server sees it; the yard's process implements it."""

from __future__ import annotations

from typing import Protocol

from runyard.wire.yard import ListenOptions, StudioAddress


class Network(Protocol):
    @property
    def address(self) -> StudioAddress | None: ...

    def open(self, options: ListenOptions) -> StudioAddress: ...

    def close(self) -> None: ...
