"""What travels to a host, once for each content: the node kit for scripts, and what the courier itself consists of."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import packaging

import runyard

# Beside the node kit, whose folder is copied whole: Python 3.9 reads them, and they need nothing but `packaging`.
_PARTS = (
    "compute/__init__.py",
    "compute/base.py",
    "compute/local/__init__.py",
    "compute/local/compute.py",
    "compute/local/machine.py",
    "compute/local/forkserver_client.py",
    "compute/ssh/__init__.py",
    "compute/ssh/remote_agent.py",
    "compute/ssh/remote_operations.py",
    "compute/ssh/framing.py",
    "compute/ssh/file_sync.py",
    "compute/ssh/socket_forward.py",
    "data/__init__.py",
    "data/cache.py",
    "environments",
)


@cache
def kit(folder: Path) -> tuple[str, bytes]:
    """For PYTHONPATH of scripts: its place on a host, and the archive."""
    return f"kit/{folder.name}", _archive(dict(_files(folder, "")))


@cache
def office(kit_folder: Path) -> tuple[str, bytes]:
    """What the courier, and whoever builds environments for it, is made of."""
    package = Path(runyard.__file__).parent
    files = dict(_files(kit_folder, ""))
    for part in _PARTS:
        place = package / part
        files.update(_files(place, f"runyard/{part}/") if place.is_dir() else {f"runyard/{part}": place})
    files.update(_files(Path(packaging.__file__).parent, "packaging/"))
    digest = hashlib.sha256()
    for name, path in sorted(files.items()):
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return f"office/{digest.hexdigest()[:16]}", _archive(files)


def _files(folder: Path, prefix: str) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            yield f"{prefix}{path.relative_to(folder).as_posix()}", path


def _archive(files: dict[str, Path]) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for name, path in sorted(files.items()):
            content = path.read_bytes()
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o644
            tar.addfile(member, io.BytesIO(content))
    return gzip.compress(raw.getvalue(), compresslevel=6, mtime=0)
