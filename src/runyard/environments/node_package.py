"""The node kit: the part of Runyard that runs inside users' Pythons, apart from the yard's own packages.

Put on PYTHONPATH by itself, so that a job sees `runyard` and nothing else of what is installed beside the yard.
"""

from __future__ import annotations

import hashlib
import shutil
import uuid
from pathlib import Path

import runyard

# Standard library only, Python 3.9 and newer; relative to the folder that `runyard` is installed in.
PACKAGE_FILES = (
    "runyard/__init__.py",
    "runyard/agent",
    "runyard/client",
    "runyard/clock.py",
    "runyard/context",
    "runyard/errors.py",
    "runyard/launch",
    "runyard/lifecycle",
    "runyard/onnx",
    "runyard/posix",
    "runyard/py.typed",
    "runyard/scoring",
    "runyard/sdk",
    "runyard/snapshots",
    "runyard/spec",
    "runyard/wire",
)

# `from azureml.core import Run` works in every job, whatever is installed there.
GENERATED_FILES = {
    "azureml/__init__.py": b"from runyard.sdk.azureml import module_finder\n\n"
    b"module_finder.install()\nmodule_finder.fill(__import__(__name__))\n"
}


def create_node_package(root: Path) -> Path:
    """The folder for PYTHONPATH: ``root/<hash of the content>``, copied when it is not there yet."""
    installed = Path(runyard.__file__).parent.parent
    files = sorted(name for part in PACKAGE_FILES for name in _files(installed, part))
    folder = root / _content_hash(installed, files)
    if folder.is_dir():
        return folder
    half = root / f"{folder.name}.half-{uuid.uuid4().hex[:8]}"
    try:
        for name in files:
            target = half / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(installed / name, target)
        for name, content in GENERATED_FILES.items():
            (half / name).parent.mkdir(parents=True, exist_ok=True)
            (half / name).write_bytes(content)
        half.rename(folder)
    except OSError:
        shutil.rmtree(half, ignore_errors=True)
        if not folder.is_dir():  # else somebody else was faster, with the same content
            raise
    return folder


def _files(installed: Path, part: str) -> list[str]:
    place = installed / part
    if place.is_file():
        return [part]
    return [str(path.relative_to(installed)) for path in place.rglob("*") if path.is_file() and path.suffix != ".pyc"]


def _content_hash(installed: Path, files: list[str]) -> str:
    digest = hashlib.sha256()
    contents = {**{name: (installed / name).read_bytes() for name in files}, **GENERATED_FILES}
    for name, content in contents.items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]
