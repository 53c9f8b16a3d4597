"""A wheel of the project contains the studio, or its build says why it does not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from uv import find_uv_bin

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the source without the studio."""
    folder = tmp_path / "checkout"
    ignored = shutil.ignore_patterns("studio", "__pycache__")
    shutil.copytree(ROOT / "src" / "runyard", folder / "src" / "runyard", ignore=ignored)
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    return folder


def build_wheel(checkout: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    words = [find_uv_bin(), "build", "--wheel", "--out-dir", str(checkout / "dist"), str(checkout)]
    return subprocess.run(words, capture_output=True, text=True, env={**os.environ, **variables})


def test_a_wheel_without_the_studio_is_refused(checkout: Path) -> None:
    result = build_wheel(checkout)
    assert result.returncode != 0
    assert "the studio was not built" in result.stderr
    assert "make ui" in result.stderr
    assert list(checkout.glob("dist/*.whl")) == []


def test_a_wheel_contains_the_studio(checkout: Path) -> None:
    studio = checkout / "src" / "runyard" / "server" / "studio"
    studio.mkdir()
    (studio / "index.html").write_text("<html></html>")
    assert build_wheel(checkout).returncode == 0
    (wheel,) = checkout.glob("dist/*.whl")
    assert "runyard/server/studio/index.html" in zipfile.ZipFile(wheel).namelist()


def test_doctor_reports_an_installation_without_the_studio(checkout: Path) -> None:
    assert build_wheel(checkout, RUNYARD_BUILD_WITHOUT_STUDIO="1").returncode == 0
    (wheel,) = checkout.glob("dist/*.whl")
    zipfile.ZipFile(wheel).extractall(checkout / "installed")
    words = [sys.executable, "-m", "runyard", "--home", str(checkout / "home"), "doctor", "--json"]
    variables = {**os.environ, "PYTHONPATH": str(checkout / "installed")}
    result = subprocess.run(words, capture_output=True, text=True, env=variables)
    (finding,) = [finding for finding in json.loads(result.stdout) if finding["name"] == "studio"]
    assert finding["state"] == "missing"
    assert "make ui" in finding["remedy"]
