"""A real Slurm of four nodes on this machine, started from the system's packages."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


@contextmanager
def four_nodes() -> Iterator[Path]:
    """Yield the folder of the cluster, with SLURM_CONF set. Skips if Slurm cannot be installed."""
    installed = subprocess.run([SCRIPTS / "install-slurm"], capture_output=True, text=True, timeout=280)
    if installed.returncode != 0:
        pytest.skip(installed.stderr.strip().splitlines()[-1])
    if os.geteuid() != 0:
        pytest.skip("only root can start the daemons of Slurm")
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    try:
        started = subprocess.run(
            [SCRIPTS / "start-slurm", "start", folder, str(_free_ports())], capture_output=True, text=True, timeout=60
        )
        assert started.returncode == 0, started.stderr
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
            yield folder
    finally:
        subprocess.run([SCRIPTS / "start-slurm", "stop", folder], timeout=60)
        shutil.rmtree(folder, ignore_errors=True)


def slurm(*argv: str) -> str:
    """Run a Slurm command and return its output."""
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True).stdout


def _free_ports() -> int:
    """The first of five consecutive free ports."""
    for first in range(17000 + os.getpid() % 500 * 10, 32000, 10):
        sockets = [socket.socket() for _ in range(5)]
        try:
            for offset, probe in enumerate(sockets):
                probe.bind(("0.0.0.0", first + offset))
            return first
        except OSError:
            continue
        finally:
            for probe in sockets:
                probe.close()
    raise AssertionError("no free ports")
