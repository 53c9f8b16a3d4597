"""Imports of runs that the real programs have written."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from import_support import tracker_variables
from uv import find_uv_bin


@pytest.fixture(scope="session")
def tracker_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python with W&B and with the SummaryWriter of tensorboardX, which torch's was made from."""
    folder = tmp_path_factory.mktemp("trackers")
    python = str(folder / "bin" / "python")
    uv = find_uv_bin()
    subprocess.run([uv, "venv", "-q", str(folder)], check=True)
    subprocess.run([uv, "pip", "install", "-q", "--python", python, "wandb>=0.31", "tensorboardX>=2.6"], check=True)
    return python


@pytest.fixture
def run_script(tracker_python: str, tmp_path: Path) -> Callable[[str], None]:
    """Run a script in the test's folder, with W&B offline and its files there."""

    def run(script: str) -> None:
        done = subprocess.run(
            [tracker_python, "-c", script],
            cwd=tmp_path,
            env=tracker_variables(tmp_path),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr

    return run
