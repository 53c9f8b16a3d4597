"""Home folders of earlier versions, each unpacked into a temporary folder and opened by the current version."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
import tarfile
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from home_facts import all_runs

from runyard import Run, Workspace
from support import complaints, stop_runs, stop_services, stop_yard

HOMES = sorted((Path(__file__).parent / "homes").glob("home-*.tar.xz"))


class OldHome:
    """A home that `make_home.py` has made, and the facts that the version of that time read from it."""

    def __init__(self, archive: Path, root: Path) -> None:
        with tarfile.open(archive) as tar:
            tar.extractall(root, filter="tar")
        text = archive.with_name(archive.name.replace(".tar.xz", ".json")).read_text(encoding="utf-8")
        old = json.loads(text)
        moves = {old["root"]: str(root), f'"port": {old["port"]}': f'"port": {_free_port()}'}
        self.home = root / "home"
        self.facts: dict[str, Any] = json.loads(_replaced(text, moves))
        self._move(moves)
        venv.create(root / "python", symlinks=True)  # the Python of its runs and services
        self.variables = {"RUNYARD_HOME": str(self.home), "PATH": f"{root}/python/bin:{os.environ['PATH']}"}

    @property
    def workspace(self) -> Workspace:
        return Workspace(home=self.home)

    def run(self, role: str) -> Run:
        return all_runs(self.workspace)[self.facts["roles"][role]]

    def _move(self, moves: dict[str, str]) -> None:
        """Homes stay where they are; this one has another path and port now, so that it disturbs no other test."""
        for path in [*self.home.glob("runs/**/*.json"), *self.home.glob("services/**/*.json")]:
            path.write_text(_replaced(path.read_text(encoding="utf-8"), moves), encoding="utf-8")
        database = sqlite3.connect(self.home / "yard.db")
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            for _, column, kind, *_ in database.execute(f"PRAGMA table_info({table})").fetchall():
                if kind in ("JSON", "TEXT"):
                    for old, new in moves.items():
                        database.execute(f'UPDATE {table} SET "{column}" = replace("{column}", ?, ?)', (old, new))
        database.commit()
        database.close()


@pytest.fixture(scope="module", params=HOMES, ids=lambda path: path.name.removesuffix(".tar.xz"))
def old_home(request: pytest.FixtureRequest) -> Iterator[OldHome]:
    root = Path(tempfile.mkdtemp(prefix="ry-"))
    old = OldHome(request.param, root)
    try:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in old.variables.items():
                patch.setenv(name, value)
            yield old
        errors = complaints(old.home)
    finally:
        stop_yard(old.home)
        stop_runs(old.home)
        stop_services(old.home)
        shutil.rmtree(root, ignore_errors=True)
    assert errors == []


@pytest.fixture
def workspace(old_home: OldHome) -> Workspace:
    return old_home.workspace


@pytest.fixture
def facts(old_home: OldHome) -> dict[str, Any]:
    return old_home.facts


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _replaced(text: str, moves: dict[str, str]) -> str:
    for old, new in moves.items():
        text = text.replace(old, new)
    return text
