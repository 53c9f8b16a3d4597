from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support import a_home, complaints


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A yard of its own: these tests are rough with it. Whatever they do, it must have nothing to complain about."""
    with a_home() as folder:
        monkeypatch.setenv("RUNYARD_HOME", str(folder))
        yield folder
        said = complaints(folder)
    assert said == []
