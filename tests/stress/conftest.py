from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support import a_home, complaints


@pytest.fixture(scope="module")
def home_of_module() -> Iterator[Path]:
    """Whatever the tests do to this yard, it must have nothing to complain about."""
    with a_home() as folder:
        yield folder
        said = complaints(folder)
    assert said == []


@pytest.fixture
def home(home_of_module: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One yard for the tests of a file."""
    monkeypatch.setenv("RUNYARD_HOME", str(home_of_module))
    return home_of_module


@pytest.fixture
def own_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A yard of its own, for a test that kills it, fills its disk or counts what it holds."""
    with a_home() as folder:
        monkeypatch.setenv("RUNYARD_HOME", str(folder))
        yield folder
        said = complaints(folder)
    assert said == []
