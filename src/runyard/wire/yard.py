"""The yard itself on the wire, and the errors that it answers with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Health:
    version: str
    pid: int
    home: str
    live_runs: int
    kit: str = ""
    studio: str = ""  # where browsers reach it; empty when it does not listen on the network
    stays: bool = False  # it was started as a server, and does not go away when nobody is here


@dataclass(frozen=True)
class Listen:
    """Where on the network a yard is to be reached."""

    host: str = ""  # where it listens already, else 127.0.0.1
    port: int = 0  # 0: the one of last time, else the first free one from 8787 on
    names: list[str] = field(default_factory=list)  # by which browsers may call it, beside the machine's own


@dataclass(frozen=True)
class StudioAddress:
    host: str
    port: int
    url: str  # without the token; with `?token=` behind it, it signs a browser in
    token: str
    ticket: str = ""  # instead of the token, once, within a minute


@dataclass(frozen=True)
class Problem:
    """An error of runyard.errors: `code` is its class name there."""

    code: str
    message: str
    hint: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
