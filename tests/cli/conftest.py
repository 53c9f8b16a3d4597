"""Fixtures of the command-line tests: a yard per session, and a yard per test."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from cli_support import CommandLine
from support import stop_services


@pytest.fixture(scope="session")
def home() -> Iterator[Path]:
    """The home of one yard for all tests. Its path is short, because paths of unix sockets are limited."""
    folder = Path(tempfile.mkdtemp(prefix="ry", dir="/tmp"))
    yield folder
    _end_yard(folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def cli(home: Path, tmp_path: Path) -> Iterator[CommandLine]:
    command_line = CommandLine(home, tmp_path)
    yield command_line
    command_line.close()


@pytest.fixture
def own_cli(tmp_path: Path) -> Iterator[CommandLine]:
    """The command line with a separate yard for this test."""
    folder = Path(tempfile.mkdtemp(prefix="ry", dir="/tmp"))
    command_line = CommandLine(folder, tmp_path)
    yield command_line
    command_line.close()
    _end_yard(folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], None]:
    def wait(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, "the condition was not met within 60 s"
            time.sleep(0.02)

    return wait


def _end_yard(folder: Path) -> None:
    environment = {**os.environ, "RUNYARD_HOME": str(folder)}
    subprocess.run([sys.executable, "-m", "runyard", "yard", "stop"], env=environment, capture_output=True, check=False)
    with suppress(OSError, ValueError):
        os.kill(int((folder / "yard.lock").read_text()), signal.SIGKILL)
    stop_services(folder)
