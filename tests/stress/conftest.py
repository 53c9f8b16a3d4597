from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support import a_home, logged_errors


@pytest.fixture(scope="module")
def home_of_module() -> Iterator[Path]:
    """A home whose yard must log no errors."""
    with a_home() as folder:
        yield folder
        errors = logged_errors(folder)
    assert errors == []


@pytest.fixture
def home(home_of_module: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One yard for the tests of a file."""
    monkeypatch.setenv("RUNYARD_HOME", str(home_of_module))
    return home_of_module


@pytest.fixture
def own_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A separate yard, for a test that kills it, fills its disk or counts its files."""
    with a_home() as folder:
        monkeypatch.setenv("RUNYARD_HOME", str(folder))
        yield folder
        errors = logged_errors(folder)
    assert errors == []
