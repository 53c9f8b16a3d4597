"""A yard of the test's own in a short folder, and the command line as people start it: as a process."""

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
    """Short, because the path of a unix socket is; one yard serves all tests of a session."""
    folder = Path(tempfile.mkdtemp(prefix="ry", dir="/tmp"))
    yield folder
    _end_yard(folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def cli(home: Path, tmp_path: Path) -> Iterator[CommandLine]:
    made = CommandLine(home, tmp_path)
    yield made
    made.close()


@pytest.fixture
def own_cli(tmp_path: Path) -> Iterator[CommandLine]:
    """With a yard of this one test."""
    folder = Path(tempfile.mkdtemp(prefix="ry", dir="/tmp"))
    made = CommandLine(folder, tmp_path)
    yield made
    made.close()
    _end_yard(folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], None]:
    def wait(true: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not true():
            assert time.monotonic() < deadline, "it did not become true within 60 s"
            time.sleep(0.02)

    return wait


def _end_yard(folder: Path) -> None:
    environment = {**os.environ, "RUNYARD_HOME": str(folder)}
    subprocess.run([sys.executable, "-m", "runyard", "yard", "stop"], env=environment, capture_output=True, check=False)
    with suppress(OSError, ValueError):
        os.kill(int((folder / "yard.lock").read_text()), signal.SIGKILL)
    stop_services(folder)
