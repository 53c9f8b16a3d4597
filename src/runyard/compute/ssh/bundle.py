"""Archives of Runyard's own code for hosts, each sent to a host once per content."""

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

# In addition to the node package. They run on Python 3.9 and need no package but `packaging`.
_MODULES = (
    "compute/__init__.py",
    "compute/base.py",
    "compute/local/__init__.py",
    "compute/local/compute.py",
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
def node_package(folder: Path) -> tuple[str, bytes]:
    """The folder for PYTHONPATH of scripts: its path below Runyard's folder on the host, and the archive."""
    return f"kit/{folder.name}", _archive(dict(_files(folder, "")))


@cache
def runtime_bundle(node_package_folder: Path) -> tuple[str, bytes]:
    """The code of the remote agent and of the environment builder: its path on the host, and the archive."""
    package = Path(runyard.__file__).parent
    files = dict(_files(node_package_folder, ""))
    for module in _MODULES:
        path = package / module
        files.update(_files(path, f"runyard/{module}/") if path.is_dir() else {f"runyard/{module}": path})
    files.update(_files(Path(packaging.__file__).parent, "packaging/"))
    digest = hashlib.sha256()
    for name, path in sorted(files.items()):
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return f"runtime/{digest.hexdigest()[:16]}", _archive(files)


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
