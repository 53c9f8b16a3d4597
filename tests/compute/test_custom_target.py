"""A compute target of another package: installed, found through its entry point, and used by a real run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cli_support import CommandLine
from runyard import ComputeTarget, Experiment, Workspace
from runyard.compute import registry
from runyard.compute.base import Compute
from runyard.compute.local.compute import LocalCompute
from runyard.errors import ComputeTargetException
from runyard.testing.compute import ComputeContract
from support import a_home, with_this_python

pytestmark = pytest.mark.real
EXAMPLE = Path(__file__).parents[2] / "examples" / "custom_target"
SOURCES = Path(registry.__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example package, installed into a separate folder. Needs no network: uv contains the build backend."""
    folder = tmp_path_factory.mktemp("site-packages")
    uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--offline", "--no-deps", "--no-cache"]
    subprocess.run([*uv, "--python", sys.executable, "--target", str(folder), str(EXAMPLE)], check=True)
    return folder


@pytest.fixture
def workspace(installed: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """Of a yard that sees the package."""
    with a_home() as home:
        monkeypatch.setenv("RUNYARD_HOME", str(home))
        monkeypatch.setenv("PYTHONPATH", str(installed), prepend=os.pathsep)
        yield Workspace()


def test_a_run_uses_a_target_of_another_package(workspace: Workspace, project: Callable[..., Path]) -> None:
    target = ComputeTarget.attach(workspace, "background", kind="nice", options={"level": 7})
    assert (target.type, target.serialize()["configuration"]) == ("nice", {"level": 7})
    script = "import os; from runyard import Run; Run.get_context().log('level', os.nice(0))"
    config = with_this_python(project(train=script))
    config.run_config.target = "background"
    run = Experiment(workspace, "custom").submit(config)
    run.wait_for_completion()
    assert run.get_metrics() == {"level": 7}


def test_the_command_line_adds_a_target_by_kind(workspace: Workspace, tmp_path: Path) -> None:
    runyard = CommandLine(Path(os.environ["RUNYARD_HOME"]), tmp_path)
    result = runyard("compute", "add", "background", "--kind", "nice", "--option", "level=3")
    assert result.code == 0, result.err
    assert ComputeTarget(workspace, "background").serialize()["configuration"] == {"level": 3}
    assert "kind nice" in runyard("compute", "list").text


def test_an_unknown_kind_is_an_error_that_lists_the_kinds(workspace: Workspace) -> None:
    with pytest.raises(ComputeTargetException, match="no kind of compute target named 'nicer'") as caught:
        ComputeTarget.attach(workspace, "background", kind="nicer")
    assert caught.value.hint == "kinds: Ssh, Remote, AmlCompute, Slurm, nice"
    with pytest.raises(ComputeTargetException, match="level must be between 0 and 19, got 99"):
        ComputeTarget.attach(workspace, "background", kind="nice", options={"level": 99})


class TestNiceCompute(ComputeContract):
    many = 20

    @pytest.fixture
    def compute(self, installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Compute]:
        monkeypatch.syspath_prepend(str(installed))
        from runyard_nice import NiceCompute

        local = LocalCompute(tmp_path)
        yield NiceCompute(local, SOURCES, 5)
        local.close()
