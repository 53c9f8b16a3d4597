"""Downloads from the package indexes of this machine's pip configuration."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from runyard.environments.manager import EnvironmentManager
from runyard.errors import EnvironmentException
from runyard.posix.pip_configuration import read_pip_configuration
from runyard.spec.environment import EnvironmentSpec, Framework

pytestmark = pytest.mark.real


@pytest.fixture
def manager(tmp_path: Path) -> EnvironmentManager:
    return EnvironmentManager(tmp_path / "environments")


def test_a_package_of_the_index_is_installed(manager, prepare) -> None:
    prepared = prepare(manager, EnvironmentSpec(pip=("six", "azureml-defaults")))
    assert "six==" in prepared.lock
    assert "azureml" not in prepared.lock
    assert "azureml-defaults: provided by Runyard" in prepare.lines


@pytest.mark.parametrize("line", ["an-unpublished-package-runyard", "six==99"])
def test_a_missing_package_is_reported_by_the_solver(manager, prepare, line) -> None:
    with pytest.raises(EnvironmentException) as caught:
        prepare(manager, EnvironmentSpec(pip=(line,)))
    assert "Because" in caught.value.message
    assert line.split("==")[0] in caught.value.message
    assert list(manager.root.iterdir()) == []


def local_cpu_torch() -> bool:
    tag = "cp{}{}".format(*sys.version_info[:2])
    folders = read_pip_configuration().local_wheel_folders
    return any(f"-{tag}-" in wheel.name for folder in folders for wheel in folder.glob("torch-2.13.0+cpu-*.whl"))


@pytest.mark.skipif(
    not local_cpu_torch(), reason="the pip configuration has no folder with a CPU wheel of torch 2.13.0"
)
@pytest.mark.parametrize("pip", [(), ("torch",)])
def test_pytorch_without_a_gpu_is_the_cpu_build(manager, prepare, pip) -> None:
    frameworks = () if pip else (Framework("pytorch", "2.13.0"),)
    prepared = prepare(manager, EnvironmentSpec(frameworks=frameworks, pip=pip, gpu=True))
    assert "torch==2.13.0+cpu" in prepared.lock
    assert "nvidia" not in prepared.lock
    argv, environ = prepared.command(("-c", "import torch; print(torch.ones(2).sum().item())"), {}, Path("/"))
    process = subprocess.run(argv, env=environ, capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "2.0"
