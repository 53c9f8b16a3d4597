"""Request and response types of the yard itself."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Health:
    version: str
    pid: int
    home: str
    live_runs: int
    kit: str = ""
    studio: str = ""  # its URL for browsers; empty if it does not listen on TCP
    stays: bool = False  # started as a server: it does not exit when it is idle


@dataclass(frozen=True)
class ListenOptions:
    """The TCP address to listen on."""

    host: str = ""  # default: the current address, else 127.0.0.1
    port: int = 0  # 0: the previous port, else the first free one from 8787 on
    names: list[str] = field(default_factory=list)  # host names to accept in addition to the machine's own


@dataclass(frozen=True)
class StudioAddress:
    host: str
    port: int
    url: str  # append `?token=TOKEN` to sign a browser in
    token: str
    ticket: str = ""  # usable once instead of the token, within a minute
