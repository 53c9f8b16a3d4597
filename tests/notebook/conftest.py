"""Notebooks need their own places: what Jupyter and IPython keep in a home folder must not be this machine's."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def jupyter_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    places = {"JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data", "JUPYTER_RUNTIME_DIR": "runtime"}
    for name, folder in {**places, "IPYTHONDIR": "ipython", "MPLCONFIGDIR": "matplotlib"}.items():
        (tmp_path / folder).mkdir()
        monkeypatch.setenv(name, str(tmp_path / folder))
    return tmp_path
