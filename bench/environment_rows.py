"""Environments from uv's cache against bare uv, and what a known one costs."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from bench.place import Place
from bench.row import Goal, Row, Size, not_measured
from bench.turns import in_turns, seconds_of
from runyard.environments.manager import EnvironmentManager
from runyard.environments.venv import find_uv
from runyard.errors import RunyardException
from runyard.spec.environment import EnvironmentSpec

_PACKAGES = ("numpy", "scikit-learn")


def environments(place: Place, size: Size) -> Iterator[Row]:
    packages = _PACKAGES if size.downloads else ()
    what = f"environment from the cache ({', '.join(packages) or 'no packages'})"
    numbers = itertools.count()

    def ours() -> float:
        manager = EnvironmentManager(place.root / f"depot{next(numbers)}")
        took = seconds_of(lambda: _prepare(manager, packages, place.root))()
        shutil.rmtree(manager.root)
        return took

    def bare() -> float:
        folder = place.root / f"bare{next(numbers)}"
        took = seconds_of(lambda: _by_uv(folder, packages))()
        shutil.rmtree(folder)
        return took

    try:
        times = in_turns({"bare": bare, "ours": ours}, min(size.rounds, 9))
    except (RunyardException, subprocess.CalledProcessError) as error:
        yield not_measured(what, str(error).splitlines()[0])
        return
    yield Row(what, times["ours"], ("`uv venv` and `uv pip install`", times["bare"]), Goal(2, times=True))

    manager = EnvironmentManager(place.root / "known")
    _prepare(manager, packages, place.root)
    known = in_turns({"known": seconds_of(lambda: _prepare(manager, packages, place.root))}, size.rounds)
    yield Row("the same, known already", known["known"], goal=Goal(0.005))


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
