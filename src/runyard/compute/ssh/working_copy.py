"""Sends the working copy of a run to a host, by content: files that the host has are not sent again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runyard.compute.ssh.host import Host
from runyard.posix import sha256
from runyard.spec.folder import RunFolder

_RETRY_S = 60.0


@dataclass(frozen=True)
class WorkingCopy:
    entries: list[dict[str, Any]]
    files: dict[str, Path]  # digest -> a file that has it


def read_working_copy(work: Path, digests: Mapping[str, str]) -> WorkingCopy:
    """List a working copy. ``digests`` are those of files, by relative path, that need not be hashed."""
    entries: list[dict[str, Any]] = []
    files: dict[str, Path] = {}
    for parent, folders, names in os.walk(work):
        relative = Path(parent).relative_to(work)
        for name in [*names, *(f for f in folders if (Path(parent) / f).is_symlink())]:
            path = Path(parent) / name
            entry: dict[str, Any] = {"path": str(relative / name)}
            if path.is_symlink():
                entries.append({**entry, "kind": "link", "target": str(path.readlink())})
            elif path.is_file():
                digest = digests.get(entry["path"]) or sha256.of_file(path)
                files[digest] = path
                executable = bool(path.stat().st_mode & 0o100)
                entries.append({**entry, "kind": "file", "digest": digest, "executable": executable})
        if not names and not folders:
            entries.append({"path": str(relative), "kind": "dir"})
    return WorkingCopy(entries, files)


def send_working_copy(host: Host, run_id: str, copy: WorkingCopy) -> None:
    # delete the files of an earlier attempt, except for the data that this attempt reads
    host.call("discard", run_id=run_id, keep=[RunFolder.DATA, RunFolder.DATA_RECORD], retry_s=_RETRY_S)
    host.upload_contents(copy.files)
    host.call("write_working_copy", run_id=run_id, entries=copy.entries, timeout_s=600.0)
