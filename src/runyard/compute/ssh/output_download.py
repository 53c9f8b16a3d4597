"""What a run wrote on a host, brought to its working copy here."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from runyard.compute.base import Handle
from runyard.compute.ssh.host import Host
from runyard.spec.folder import RunFolder


def fetch(host: Host, handle: Handle, names: Sequence[str], *, only_new: bool) -> list[str]:
    """Below each of the names; returns warnings: what was left out. ``only_new``: what is here already stays."""
    work = RunFolder(Path(handle.folder)).work
    known = {
        str(path.relative_to(work)): [path.stat().st_size, path.stat().st_mtime_ns]
        for name in names
        for path in (work / name).rglob("*")
        if path.is_file()
    }

    def received(head: dict[str, Any], body: bytes) -> None:
        name = str(head["fetched"])
        path = work / name
        if name.startswith("/") or ".." in Path(name).parts or (only_new and name in known):
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        half = path.with_name(f".{path.name}.half")
        with open(half, "r+b" if head["at"] else "wb") as file:
            file.seek(int(head["at"]))
            file.write(body)
        if head["last"]:
            os.utime(half, ns=(int(head["mtime_ns"]), int(head["mtime_ns"])))
            half.replace(path)

    said: list[str] = host.call(
        "fetch",
        run=handle.run_id,
        names=list(names),
        known=known,
        heard=received,
        timeout_s=120.0,
        patience_s=120.0,
    )
    return said
