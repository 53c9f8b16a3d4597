"""What enters users' Pythons is complete by itself, on every Python that runs may have."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from runyard.environments.node_package import PARTS, kit

IMPORT_ALL = """
import importlib, pathlib, sys
folder = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(folder))
names = sorted(
    ".".join(p.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
    for p in folder.rglob("*.py") if p.name != "__main__.py"
)
for name in names:
    importlib.import_module(name)
assert all(m.__file__.startswith(str(folder)) for n, m in sys.modules.items() if n.split(".")[0] == "runyard")
print(len(names))
"""


def interpreters() -> list[str]:
    places = [*os.get_exec_path(), *map(str, Path.home().glob(".pyenv/versions/*/bin"))]
    found: dict[str, str] = {}
    for place in places:
        for path in Path(place).glob("python3.*") if "shims" not in place else ():
            minor = re.fullmatch(r"python3\.(\d+)", path.name)
            if minor and int(minor[1]) >= 9 and os.access(path, os.X_OK):
                found.setdefault(path.name, str(path))
    return [found[name] for name in sorted(found)] or [sys.executable]


@pytest.mark.parametrize("python", interpreters(), ids=lambda path: Path(path).name)
@pytest.mark.real
def test_every_module_of_the_kit_can_be_imported_with_nothing_else_installed(python: str, tmp_path: Path) -> None:
    folder = kit(tmp_path / "kit")
    done = subprocess.run([python, "-I", "-S", "-B", "-c", IMPORT_ALL, str(folder)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10


def test_the_kit_is_copied_once_and_holds_every_part(tmp_path: Path) -> None:
    folder = kit(tmp_path / "kit")
    written_at = (folder / "runyard" / "errors.py").stat().st_mtime_ns
    assert kit(tmp_path / "kit") == folder
    assert (folder / "runyard" / "errors.py").stat().st_mtime_ns == written_at
    assert all((folder / part).exists() for part in PARTS)
    assert not list(folder.rglob("*.pyc"))


def test_many_who_copy_at_once_leave_one_whole_kit(tmp_path: Path) -> None:
    together, folders = threading.Barrier(8), []

    def copy() -> None:
        together.wait()
        folders.append(kit(tmp_path / "kit"))

    threads = [threading.Thread(target=copy) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(folders)) == 1
    assert list((tmp_path / "kit").iterdir()) == [folders[0]]
