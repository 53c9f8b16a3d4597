"""Frameworks log into a real yard."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from runyard import Experiment, Run, ScriptRunConfig


@pytest.fixture
def submit(experiment: Experiment, tmp_path: Path) -> Callable[..., Run]:
    """Submit a script that runs in the Python of the tests."""

    def start(script: str, *arguments: str) -> Run:
        folder = tmp_path / "project"
        folder.mkdir(exist_ok=True)
        (folder / "train.py").write_text(script, encoding="utf-8")
        config = ScriptRunConfig(str(folder), script="train.py", arguments=list(arguments))
        config.run_config.environment.python.user_managed_dependencies = True
        return experiment.submit(config)

    return start
