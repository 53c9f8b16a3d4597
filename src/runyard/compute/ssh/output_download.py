"""Downloads the outputs of a run from a host to the run's working copy on the yard's machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from runyard.compute.base import Handle
from runyard.compute.ssh.host import Host
from runyard.spec.folder import RunFolder


def download_outputs(host: Host, handle: Handle, names: Sequence[str], *, keep_existing: bool) -> list[str]:
    """Download the files below these folders or files of the working copy; return warnings about files left out."""
    work = RunFolder(Path(handle.folder)).work
    existing = {
        str(path.relative_to(work)): [path.stat().st_size, path.stat().st_mtime_ns]
        for name in names
        for path in (work / name).rglob("*")
        if path.is_file()
    }

    def receive(head: dict[str, Any], body: bytes) -> None:
        name = str(head["name"])
        path = work / name
        if name.startswith("/") or ".." in Path(name).parts or (keep_existing and name in existing):
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.half")
        with open(draft, "r+b" if head["at"] else "wb") as file:
            file.seek(int(head["at"]))
            file.write(body)
        if head["is_last"]:
            os.utime(draft, ns=(int(head["mtime_ns"]), int(head["mtime_ns"])))
            draft.replace(path)

    warnings: list[str] = host.call(
        "download",
        run_id=handle.run_id,
        names=list(names),
        existing=existing,
        on_message=receive,
        timeout_s=120.0,
        retry_s=120.0,
    )
    return warnings
