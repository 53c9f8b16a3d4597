"""Against the package indexes that this machine's pip is configured for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from runyard.environments.manager import EnvironmentDepot
from runyard.environments.pipconf import read_pip_configuration
from runyard.errors import EnvironmentException
from runyard.spec.environment import EnvironmentSpec, Framework

pytestmark = pytest.mark.real


@pytest.fixture
def depot(tmp_path: Path) -> EnvironmentDepot:
    return EnvironmentDepot(tmp_path / "environments")


def test_a_package_of_the_index_is_installed(depot, prepare) -> None:
    prepared = prepare(depot, EnvironmentSpec(pip=("six", "azureml-defaults")))
    assert "six==" in prepared.lock
    assert "azureml" not in prepared.lock
    assert "azureml-defaults: provided by Runyard" in prepare.lines


@pytest.mark.parametrize("line", ["a-package-that-nobody-would-publish-runyard", "six==99"])
def test_what_the_index_does_not_have_is_told_by_the_solver(depot, prepare, line) -> None:
    with pytest.raises(EnvironmentException) as caught:
        prepare(depot, EnvironmentSpec(pip=(line,)))
    assert "Because" in caught.value.message
    assert line.split("==")[0] in caught.value.message
    assert list(depot.root.iterdir()) == []


def local_cpu_torch() -> bool:
    tag = "cp{}{}".format(*sys.version_info[:2])
    folders = read_pip_configuration().local_wheel_folders
    return any(f"-{tag}-" in wheel.name for folder in folders for wheel in folder.glob("torch-2.13.0+cpu-*.whl"))


@pytest.mark.skipif(not local_cpu_torch(), reason="pip's configuration leads to no CPU wheel of torch 2.13.0")
@pytest.mark.parametrize("pip", [(), ("torch",)])
def test_pytorch_without_a_gpu_is_the_cpu_build(depot, prepare, pip) -> None:
    frameworks = () if pip else (Framework("pytorch", "2.13.0"),)
    prepared = prepare(depot, EnvironmentSpec(frameworks=frameworks, pip=pip, gpu=True))
    assert "torch==2.13.0+cpu" in prepared.lock
    assert "nvidia" not in prepared.lock
    argv, environ = prepared.command(("-c", "import torch; print(torch.ones(2).sum().item())"), {}, Path("/"))
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "2.0"
