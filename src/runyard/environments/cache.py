"""The environments on disk: one folder each, complete if it contains `runyard.json`.

<root>/<key>/                    an environment
<root>/<key>.….draft/            one that is being built
<root>/<key>.removing-<nonce>/   one that is being removed
<root>/wheels/                   wheels that were built here (see horovod/wheel_cache.py)
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path

from runyard import clock
from runyard.environments import build_process
from runyard.environments.horovod import wheel_cache
from runyard.environments.prepared import EnvironmentInfo
from runyard.posix.atomic_write import write_text

_METADATA = "runyard.json"


@dataclass(frozen=True)
class Metadata:
    name: str
    python: str
    packages: tuple[str, ...]
    lock: str
    warnings: tuple[str, ...]
    created_at: float
    size_bytes: int


def load(root: Path, key: str, *, with_python: bool = True) -> Metadata | None:
    """The metadata of a complete environment, which is marked as used now; None if it does not exist.

    Starts no process.
    """
    folder = root / key
    try:
        metadata = _read(folder)
    except (OSError, ValueError, KeyError):
        return None
    # if its base interpreter was uninstalled, the link to it is dangling
    if with_python and not os.access(folder / "bin" / "python", os.X_OK):
        remove(folder)
        return None
    with contextlib.suppress(OSError):
        os.utime(folder / _METADATA)
    return metadata


def complete(
    folder: Path, *, name: str, python: str, packages: tuple[str, ...], lock: str, warnings: tuple[str, ...]
) -> Metadata:
    """Write the metadata, which makes the folder an environment."""
    metadata = Metadata(name, python, packages, lock, warnings, clock.now(), _size(folder))
    write_text(folder / _METADATA, json.dumps(metadata.__dict__, indent=1), mode=0o644)
    return metadata


def list_environments(root: Path) -> list[EnvironmentInfo]:
    """All complete environments, most recently used first."""
    infos = []
    for folder in root.iterdir() if root.is_dir() else ():
        try:
            data = _read(folder)
            used_at = (folder / _METADATA).stat().st_mtime
        except (OSError, ValueError, KeyError):
            continue
        info = EnvironmentInfo(
            key=folder.name,
            path=folder,
            last_used_at=used_at,
            name=data.name,
            size_bytes=data.size_bytes,
            created_at=data.created_at,
            packages=data.packages,
            python=data.python,
        )
        infos.append(info)
    return sorted(infos, key=lambda info: (-info.last_used_at, info.key))


def remove(folder: Path) -> None:
    """Remove an environment. It is renamed first, so that no process sees a part of it."""
    trash = folder.with_name(f"{folder.name.split('.')[0]}.removing-{uuid.uuid4().hex[:8]}")
    with contextlib.suppress(FileNotFoundError):
        folder.rename(trash)
        shutil.rmtree(trash, ignore_errors=True)


def clean_leftovers(root: Path) -> None:
    """Kill the build processes of a killed yard and remove all incomplete environments."""
    build_process.kill_builders(root)
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        if folder.name == wheel_cache.FOLDER:
            wheel_cache.clean_leftovers(folder)
        elif folder.is_dir() and ("." in folder.name or not (folder / _METADATA).exists()):
            shutil.rmtree(folder, ignore_errors=True)


def _read(folder: Path) -> Metadata:
    data = json.loads((folder / _METADATA).read_text())
    data["packages"], data["warnings"] = tuple(data["packages"]), tuple(data["warnings"])
    return Metadata(**data)


def _size(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(f"{parent}/{name}").st_size
    return total
