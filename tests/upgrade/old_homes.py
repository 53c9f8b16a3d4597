"""A home folder that `make_home.py` has packed, unpacked into a temporary folder."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import tarfile
import venv
from pathlib import Path
from typing import Any

from home_facts import all_runs

from runyard import Run, Workspace


class OldHome:
    """The home itself, and the facts that the version which made it read from it."""

    def __init__(self, archive: Path, root: Path) -> None:
        with tarfile.open(archive) as tar:
            tar.extractall(root, filter="tar")
        text = archive.with_name(archive.name.replace(".tar.xz", ".json")).read_text(encoding="utf-8")
        origin = json.loads(text)
        substitutions = {origin["root"]: str(root), f'"port": {origin["port"]}': f'"port": {_free_port()}'}
        self.home = root / "home"
        self.facts: dict[str, Any] = json.loads(_substitute(text, substitutions))
        self._relocate(substitutions)
        venv.create(root / "python", symlinks=True)  # the Python of its runs and services
        self.variables = {"RUNYARD_HOME": str(self.home), "PATH": f"{root}/python/bin:{os.environ['PATH']}"}

    @property
    def workspace(self) -> Workspace:
        return Workspace(home=self.home)

    def run(self, role: str) -> Run:
        return all_runs(self.workspace)[self.facts["roles"][role]]

    def _relocate(self, substitutions: dict[str, str]) -> None:
        """Changes the path of the home and the port of its service, so that tests can run side by side.

        An upgrade does not move a home, so the home cannot be expected to adapt to another path.
        """
        for path in [*self.home.glob("runs/**/*.json"), *self.home.glob("services/**/*.json")]:
            path.write_text(_substitute(path.read_text(encoding="utf-8"), substitutions), encoding="utf-8")
        database = sqlite3.connect(self.home / "yard.db")
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            for _, column, kind, *_ in database.execute(f"PRAGMA table_info({table})").fetchall():
                if kind in ("JSON", "TEXT"):
                    for old, new in substitutions.items():
                        database.execute(f'UPDATE {table} SET "{column}" = replace("{column}", ?, ?)', (old, new))
        database.commit()
        database.close()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _substitute(text: str, substitutions: dict[str, str]) -> str:
    for old, new in substitutions.items():
        text = text.replace(old, new)
    return text
