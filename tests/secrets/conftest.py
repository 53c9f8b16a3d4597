from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runyard import ScriptRunConfig
from support import a_home


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A separate yard: everything in its home is searched."""
    with a_home() as folder:
        monkeypatch.setenv("RUNYARD_HOME", str(folder))
        monkeypatch.setenv("STARTER_PASSPHRASE", "of-the-shell-that-started-the-yard")
        yield folder


@pytest.fixture
def configure(project: Callable[..., Path]) -> Callable[..., ScriptRunConfig]:
    """`configure('print(1)', HF_TOKEN=Secret('hf'))` configures a run of a script with these variables."""

    def create(script: str, arguments: list[str] | None = None, **variables: object) -> ScriptRunConfig:
        config = ScriptRunConfig(project(train=script), script="train.py", arguments=arguments or [])
        config.run_config.environment.python.user_managed_dependencies = True
        config.run_config.environment_variables = variables
        return config

    return create
