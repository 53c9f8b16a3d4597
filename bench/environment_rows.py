"""Environments built from uv's cache compared with bare uv, and the cost of an existing environment."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from bench.rounds import measure_rounds, timed
from bench.row import Goal, Row, Size, not_measured
from bench.sandbox import Sandbox
from runyard.environments.manager import EnvironmentManager
from runyard.environments.venv import find_uv
from runyard.errors import RunyardException
from runyard.spec.environment import EnvironmentSpec

_PACKAGES = ("numpy", "scikit-learn")


def environments(sandbox: Sandbox, size: Size) -> Iterator[Row]:
    packages = _PACKAGES if size.downloads else ()
    title = f"environment from the cache ({', '.join(packages) or 'no packages'})"
    numbers = itertools.count()

    def ours() -> float:
        manager = EnvironmentManager(sandbox.root / f"manager{next(numbers)}")
        took = timed(lambda: _prepare(manager, packages, sandbox.root))()
        shutil.rmtree(manager.root)
        return took

    def bare() -> float:
        folder = sandbox.root / f"bare{next(numbers)}"
        took = timed(lambda: _by_uv(folder, packages))()
        shutil.rmtree(folder)
        return took

    try:
        times = measure_rounds({"bare": bare, "ours": ours}, min(size.rounds, 9))
    except (RunyardException, subprocess.CalledProcessError) as error:
        yield not_measured(title, str(error).splitlines()[0])
        return
    yield Row(title, times["ours"], ("`uv venv` and `uv pip install`", times["bare"]), Goal(2, relative=True))

    manager = EnvironmentManager(sandbox.root / "known")
    _prepare(manager, packages, sandbox.root)
    existing = measure_rounds({"known": timed(lambda: _prepare(manager, packages, sandbox.root))}, size.rounds)
    yield Row("the same, already built", existing["known"], goal=Goal(0.005))


def _prepare(manager: EnvironmentManager, packages: tuple[str, ...], folder: Path) -> None:
    manager.prepare(
        EnvironmentSpec(pip=packages),
        has_gpu=False,
        report=lambda text: None,
        canceled=threading.Event(),
        run_folder=folder,
        node_package=folder,
        run_id="bench_1",
    )


def _by_uv(folder: Path, packages: tuple[str, ...]) -> None:
    uv = find_uv(os.environ, folder)
    commands = [["venv", "--no-project", "--python", sys.executable, str(folder)]]
    if packages:
        python = str(folder / "bin" / "python")
        commands.append(["pip", "install", "--python", python, *uv.settings.arguments, *packages])
    for arguments in commands:
        subprocess.run([uv.path, *arguments], env=uv.environ, check=True, capture_output=True)
