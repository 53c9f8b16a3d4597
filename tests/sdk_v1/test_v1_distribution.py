"""`pip install runyard runyard-azureml`, built and installed into a new environment, also with the real SDK."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from uv import find_uv_bin

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("wheels")
    for source in (ROOT, ROOT / "distributions" / "runyard-azureml"):
        uv("build", "--wheel", "--quiet", "--out-dir", str(folder), str(source))
    return sorted(map(str, folder.glob("*.whl")))


@pytest.fixture
def python(wheels: list[str], tmp_path: Path) -> Path:
    """An environment with both distributions and nothing else: the SDK needs no other package."""
    uv("venv", "--quiet", "--python", sys.executable, str(tmp_path / "venv"))
    interpreter = tmp_path / "venv" / "bin" / "python"
    uv("pip", "install", "--quiet", "--no-deps", "--python", str(interpreter), *wheels)
    return interpreter


def uv(*words: str) -> None:
    variables = {**os.environ, "RUNYARD_BUILD_WITHOUT_STUDIO": "1"}  # these tests do not need it
    done = subprocess.run([find_uv_bin(), *words], capture_output=True, text=True, env=variables)
    assert done.returncode == 0, done.stderr


def run_code(python: Path, code: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "RUNYARD"))}
    return subprocess.run([python, "-c", code], capture_output=True, text=True, env=environment)


def test_the_stubs_match_the_table() -> None:
    written = runpy.run_path(str(ROOT / "scripts" / "azureml_stubs.py"))
    folder: Path = written["FOLDER"]
    stored = {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*.pyi")}
    assert stored == written["stubs"](), "python scripts/azureml_stubs.py writes them"


@pytest.mark.real
@pytest.mark.xdist_group("distribution")
def test_the_names_exist_after_an_installation(python: Path) -> None:
    done = run_code(
        python,
        "import sys\nassert not [m for m in sys.modules if m.startswith('runyard.')]\n"
        "import azureml.core\nfrom azureml.train.dnn import PyTorch\nfrom azureml.core import Workspace\n"
        "print(azureml.core.VERSION, PyTorch.__module__)\n"
        "try:\n    Workspace('', '', '')\nexcept azureml.exceptions.UserErrorException as error:\n    print(error)",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1.61.0+runyard.")
    assert "UserErrorException:\n\tMessage: subscription_id must be non-empty text" in done.stdout


@pytest.mark.real
@pytest.mark.xdist_group("distribution")
def test_the_distribution_shares_no_file_with_the_real_sdk(wheels: list[str]) -> None:
    wheel = next(path for path in wheels if Path(path).name.startswith("runyard_azureml-"))
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if name.startswith("azureml/")]
        assert "azureml-stubs/core/__init__.pyi" in archive.namelist()


@pytest.mark.real
@pytest.mark.xdist_group("distribution")
def test_the_real_sdk_in_the_same_environment_is_refused(python: Path) -> None:
    packages = next(python.parents[1].glob("lib/python*/site-packages"))
    core = packages / "azureml" / "core"
    core.mkdir(parents=True)
    (packages / "azureml" / "__init__.py").write_text("")
    (core / "__init__.py").write_text("VERSION = 'real'")
    for statement in ("import azureml.core", "from azureml.core import Run"):
        done = run_code(python, statement)
        assert done.returncode == 1
        assert "azureml-core, the real SDK, is installed in" in done.stderr
        assert "pip uninstall azureml-core, or pip uninstall runyard-azureml" in done.stderr
    assert run_code(python, "import runyard; print(runyard.Run.__name__)").stdout == "Run\n"
    uv("pip", "uninstall", "--quiet", "--python", str(python), "runyard-azureml")
    # what is left is the real one, whole
    assert run_code(python, "import azureml.core; print(azureml.core.VERSION)").stdout == "real\n"
