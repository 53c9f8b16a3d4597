"""The node package: the part of Runyard that runs in users' Pythons, separate from the yard's own packages.

Only this folder is put on PYTHONPATH, so that a job can import `runyard` but no package that is installed for the yard.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import runyard
from runyard.posix.atomic_write import create_folder

# Standard library only, Python 3.9 and newer; relative to the folder in which `runyard` is installed.
PACKAGE_FILES = (
    "runyard/__init__.py",
    "runyard/agent",
    "runyard/client",
    "runyard/clock.py",
    "runyard/context",
    "runyard/errors.py",
    "runyard/integrations",
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

# makes `from azureml.core import Run` work in every job
GENERATED_FILES = {
    "azureml/__init__.py": b"from runyard.sdk.azureml import module_finder\n\n"
    b"module_finder.install()\nmodule_finder.fill(__import__(__name__))\n"
}


def create_node_package(root: Path) -> Path:
    """Copy the files to ``root/<hash of the content>`` if that does not exist, and return this folder."""
    installed = Path(runyard.__file__).parent.parent
    names = sorted(name for part in PACKAGE_FILES for name in _list_files(installed, part))
    contents = {**{name: (installed / name).read_bytes() for name in names}, **GENERATED_FILES}
    folder = root / _content_hash(contents)
    if folder.is_dir():
        return folder
    with create_folder(folder) as draft:
        for name, content in contents.items():
            (draft / name).parent.mkdir(parents=True, exist_ok=True)
            (draft / name).write_bytes(content)
    return folder


def _list_files(installed: Path, part: str) -> list[str]:
    path = installed / part
    if path.is_file():
        return [part]
    return [str(file.relative_to(installed)) for file in path.rglob("*") if file.is_file() and file.suffix != ".pyc"]


def _content_hash(contents: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, content in contents.items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]
