"""Unique model names, and small files to register."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

_numbers = itertools.count(1)


@pytest.fixture
def name() -> str:
    return f"digits-{next(_numbers)}"


@pytest.fixture
def weights(tmp_path: Path) -> Callable[[str], Path]:
    """`weights('first')` creates a file `model.pt` with this content."""

    def make(content: str) -> Path:
        path = tmp_path / "model.pt"
        path.write_text(content)
        return path

    return make
