"""Generated requests to every route: a short form of `make fuzz`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.real


def test_no_generated_request_is_an_error_of_the_yard() -> None:
    script = Path(__file__).parents[2] / "scripts" / "fuzz.py"
    result = subprocess.run(
        [sys.executable, str(script), "--seconds", "40"], capture_output=True, text=True, timeout=280
    )
    assert result.returncode == 0, result.stdout[-20_000:] + result.stderr[-5_000:]
