"""A yard of its own for every test that asks for one: real process, real socket, in a short folder of its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runyard import Experiment, Workspace
from support import a_home

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def shared_home() -> Iterator[Path]:
    with a_home() as folder:
        yield folder


@pytest.fixture
def home(shared_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder of a yard that the tests of this process share; `tests/yard` has one of its own for each test."""
    monkeypatch.setenv("RUNYARD_HOME", str(shared_home))
    return shared_home


@pytest.fixture
def workspace(home: Path) -> Workspace:
    return Workspace()


@pytest.fixture
def experiment(workspace: Workspace) -> Experiment:
    """An experiment that no other test has runs in."""
    return Experiment(workspace, f"digits-{next(_numbers)}")


@pytest.fixture
def project(tmp_path: Path) -> Callable[..., Path]:
    """`project(train='print(1)')` makes a folder with train.py in it."""

    def make(**scripts: str) -> Path:
        folder = tmp_path / "project"
        folder.mkdir(exist_ok=True)
        for name, text in scripts.items():
            (folder / f"{name}.py").write_text(text, encoding="utf-8")
        return folder

    return make
