"""The node package is complete and works with every supported Python."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from runyard.environments.node_package import PACKAGE_FILES, create_node_package

IMPORT_ALL = """
import importlib, pathlib, sys
folder = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(folder))
names = sorted(
    ".".join(p.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
    for p in folder.rglob("*.py") if p.name != "__main__.py"
)
for name in names:
    framework = name.rpartition(".")[2] if name.startswith("runyard.integrations.") else None
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:  # an integration imports the framework that it extends
        if framework not in ("accelerate", "lightning", "optuna", "transformers") or framework not in str(error):
            raise
assert all(m.__file__.startswith(str(folder)) for n, m in sys.modules.items() if n.split(".")[0] == "runyard")
print(len(names))
"""


def interpreters() -> list[str]:
    folders = [*os.get_exec_path(), *map(str, Path.home().glob(".pyenv/versions/*/bin"))]
    paths: dict[str, str] = {}
    for folder in folders:
        for path in Path(folder).glob("python3.*") if "shims" not in folder else ():
            minor = re.fullmatch(r"python3\.(\d+)", path.name)
            if minor and int(minor[1]) >= 9 and os.access(path, os.X_OK):
                paths.setdefault(path.name, str(path))
    return [paths[name] for name in sorted(paths)] or [sys.executable]


@pytest.mark.parametrize("python", interpreters(), ids=lambda path: Path(path).name)
@pytest.mark.real
def test_every_module_can_be_imported_without_other_packages(python: str, tmp_path: Path) -> None:
    folder = create_node_package(tmp_path / "packages")
    process = subprocess.run([python, "-I", "-S", "-B", "-c", IMPORT_ALL, str(folder)], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    assert int(process.stdout) > 10


def test_the_package_is_copied_once_and_complete(tmp_path: Path) -> None:
    folder = create_node_package(tmp_path / "packages")
    written_at = (folder / "runyard" / "errors.py").stat().st_mtime_ns
    assert create_node_package(tmp_path / "packages") == folder
    assert (folder / "runyard" / "errors.py").stat().st_mtime_ns == written_at
    assert all((folder / part).exists() for part in PACKAGE_FILES)
    assert not list(folder.rglob("*.pyc"))


def test_concurrent_copies_leave_one_package(tmp_path: Path) -> None:
    start, folders = threading.Barrier(8), []

    def copy() -> None:
        start.wait()
        folders.append(create_node_package(tmp_path / "packages"))

    threads = [threading.Thread(target=copy) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(folders)) == 1
    assert list((tmp_path / "packages").iterdir()) == [folders[0]]
