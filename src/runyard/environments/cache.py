"""The environments on disk: one folder each, complete when its `runyard.json` is there.

<root>/<key>/                    an environment
<root>/<key>.building-<nonce>/   one on its way
<root>/<key>.removing-<nonce>/   one on its way out
<root>/wheels/                   wheels that were built here (see horovod/shelf.py)
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

_META = "runyard.json"


@dataclass(frozen=True)
class Meta:
    name: str
    python: str
    packages: tuple[str, ...]
    lock: str
    warnings: tuple[str, ...]
    created_at: float
    size_bytes: int


def known(root: Path, key: str, *, with_python: bool = True) -> Meta | None:
    """What is known of a complete environment, marked as used now. No process is started for it."""
    folder = root / key
    try:
        meta = _read(folder)
    except (OSError, ValueError, KeyError):
        return None
    # an interpreter that was uninstalled leaves a link to nowhere
    if with_python and not os.access(folder / "bin" / "python", os.X_OK):
        remove(folder)
        return None
    with contextlib.suppress(OSError):
        os.utime(folder / _META)
    return meta


def complete(
    folder: Path, *, name: str, python: str, packages: tuple[str, ...], lock: str, warnings: tuple[str, ...]
) -> Meta:
    """Writes what makes the folder an environment; the last step but the rename."""
    meta = Meta(name, python, packages, lock, warnings, clock.now(), _size(folder))
    half = folder / (_META + ".half")
    half.write_text(json.dumps(meta.__dict__, indent=1))
    half.rename(folder / _META)
    return meta


def building_folder(root: Path, key: str) -> Path:
    folder = root / f"{key}.building-{uuid.uuid4().hex[:8]}"
    folder.mkdir(parents=True, mode=0o755)
    return folder


def listed(root: Path) -> list[EnvironmentInfo]:
    """All complete environments, the one used last first."""
    found = []
    for folder in root.iterdir() if root.is_dir() else ():
        try:
            meta = _read(folder)
            used_at = (folder / _META).stat().st_mtime
        except (OSError, ValueError, KeyError):
            continue
        found.append(
            EnvironmentInfo(
                folder.name, meta.name, folder, meta.size_bytes, meta.created_at, used_at, meta.packages, meta.python
            )
        )
    return sorted(found, key=lambda info: (-info.last_used_at, info.key))


def remove(folder: Path) -> None:
    """Gone for everybody at once, then from the disk."""
    aside = folder.with_name(f"{folder.name.split('.')[0]}.removing-{uuid.uuid4().hex[:8]}")
    with contextlib.suppress(FileNotFoundError):
        folder.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)


def clean_leftovers(root: Path) -> None:
    """What a killed yard left: its builders, then every folder that never became an environment."""
    build_process.kill_builders(root)
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        if folder.name == wheel_cache.FOLDER:
            wheel_cache.clean_leftovers(folder)
        elif folder.is_dir() and ("." in folder.name or not (folder / _META).exists()):
            shutil.rmtree(folder, ignore_errors=True)


def _read(folder: Path) -> Meta:
    data = json.loads((folder / _META).read_text())
    data["packages"], data["warnings"] = tuple(data["packages"]), tuple(data["warnings"])
    return Meta(**data)


def _size(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(f"{place}/{name}").st_size
    return total
