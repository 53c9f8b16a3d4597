"""Every feature with the oldest supported client and with the newest, as the guide lists it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from runyard import Experiment

ROOT = Path(__file__).parents[2]


@pytest.fixture
def mlflow_versions() -> Any:
    spec = importlib.util.spec_from_file_location("mlflow_versions", ROOT / "scripts" / "mlflow_versions.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_guide_lists_the_features_that_work_with_both_clients(
    mlflow_versions: Any, experiment: Experiment, tracking: str
) -> None:
    old = mlflow_versions.run_features(
        mlflow_versions.python_with(mlflow_versions.OLD, experiment), experiment.workspace
    )
    new = mlflow_versions.run_features(sys.executable, experiment.workspace)
    assert (old["version"][:5], new["version"][:2]) == ("2.22.", "3.")
    page = (ROOT / "docs" / "guides" / "mlflow.md").read_text(encoding="utf-8")
    assert mlflow_versions.with_table(page, mlflow_versions.table(old, new)) == page, (
        "python scripts/mlflow_versions.py writes it"
    )
