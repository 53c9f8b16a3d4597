"""One yard trains all examples: an environment that several of them ask for is built once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard import Workspace
from support import a_home


@pytest.fixture(scope="session")
def examples_home() -> Iterator[Path]:
    with a_home() as folder:
        yield folder


@pytest.fixture
def yard(examples_home: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("RUNYARD_HOME", str(examples_home))
    return Workspace()
