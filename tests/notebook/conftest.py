"""Separate folders for Jupyter and IPython, so that the tests do not use those of the user."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def jupyter_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folders = {"JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data", "JUPYTER_RUNTIME_DIR": "runtime"}
    for name, folder in {**folders, "IPYTHONDIR": "ipython", "MPLCONFIGDIR": "matplotlib"}.items():
        (tmp_path / folder).mkdir()
        monkeypatch.setenv(name, str(tmp_path / folder))
    return tmp_path
