"""Data for the runs of a host: what its cache lacks is sent, once, and goes on after a cut from where it was."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from runyard import clock
from runyard.compute.ssh.framing import CHUNK, Cut
from runyard.compute.ssh.host import Host
from runyard.data.cache import Leaf
from runyard.errors import ComputeTargetException, DataException

_PATIENCE_S = 120.0
_SAY_EVERY_S = 1.0
Say = Callable[[str], None]


@dataclass(frozen=True)
class Gift:
    """``private``: the name of a copy of the run's own; "" = the tree that all runs there share."""

    name: str  # as people call it
    leaves: tuple[Leaf, ...]
    contents: dict[str, Path]  # by digest, on the yard's machine
    private: str = ""


def give(host: Host, run_id: str, gift: Gift, say: Say, abandoned: threading.Event) -> None:
    """Blocks. Raises ComputeTargetException where the host is away for too long."""
    sizes = {leaf.digest: leaf.size for leaf in gift.leaves}
    give_up = clock.monotonic() + _PATIENCE_S
    lacking: list[str] = []
    while True:
        try:
            before = len(lacking)
            lacking = host.call("lacking_data", digests=sorted(sizes), timeout_s=300.0, patience_s=_PATIENCE_S)
            if not lacking:
                break
            if before == len(lacking):  # everything was sent, and something is not what it was said to be
                raise DataException(
                    f"{len(lacking):,} files of {gift.name} changed while they were sent to {host.name}",
                    hint="submit again when nobody writes to them",
                )
            _send(host, gift, lacking, sizes, say, abandoned)
        except Cut as cut:
            lacking = []
            if clock.monotonic() > give_up or abandoned.wait(0.5):
                raise ComputeTargetException(f"the connection to {host.name} was lost: {cut}", passing=True) from cut
    leaves = [[leaf.path, leaf.digest, leaf.size] for leaf in gift.leaves]
    host.call("plant", run=run_id, leaves=leaves, private=gift.private, timeout_s=3600.0, patience_s=_PATIENCE_S)


def _send(
    host: Host, gift: Gift, lacking: list[str], sizes: dict[str, int], say: Say, abandoned: threading.Event
) -> None:
    line = host.connect()
    total, sent, told_at = sum(sizes[digest] for digest in lacking), 0, clock.monotonic()
    for digest in lacking:
        with open(gift.contents[digest], "rb") as file:
            while True:
                if abandoned.is_set():
                    raise DataException(f"{gift.name} was not wanted any more")
                data = file.read(CHUNK)
                line.send({"do": "content", "digest": digest, "last": len(data) < CHUNK, "of_data": True}, data)
                sent += len(data)
                if clock.monotonic() - told_at > _SAY_EVERY_S:
                    told_at = clock.monotonic()
                    say(f"sending data {gift.name} to {host.name} {sent / 1e6:,.0f}/{total / 1e6:,.0f} MB")
                if len(data) < CHUNK:
                    break
    # asked in the order in which they were sent: the answer comes after the last of them
    line.ask("lacking_data", {"digests": lacking[-1:]}, timeout_s=600.0)
    say(f"data {gift.name}: {len(lacking):,} files sent to {host.name}")
