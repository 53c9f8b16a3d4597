from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support import a_home


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A separate yard, because these tests kill it."""
    with a_home() as folder:
        monkeypatch.setenv("RUNYARD_HOME", str(folder))
        yield folder
