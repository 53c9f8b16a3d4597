"""Peers, each installed once by uv in a separate environment and measured in a separate process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.sandbox import cache
from runyard.environments.venv import find_uv

_INSTALL_TIMEOUT_S = 180
_SCRIPTS = Path(__file__).parent / "peer_scripts"


class NotMeasured(Exception):
    """The reason that a peer is not in the table."""


class Peer:
    """A process that runs a peer's script; `measure` lets it do its work once and returns its measurement."""

    def __init__(self, package: str, script: str, folder: Path) -> None:
        python = python_with(package)
        folder.mkdir(parents=True, exist_ok=True)
        self.name = package
        with open(folder / "stderr.txt", "wb") as log_file:
            self._process = subprocess.Popen(
                [python, str(_SCRIPTS / script), str(folder)],
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log_file,
                text=True,
            )

    def measure(self) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise NotMeasured(f"{self.name}: ended with exit code {self._process.wait()}")
        return float(answer)

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.close()
            self._process.wait(20)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


@contextmanager
def start_peers(peer_scripts: Iterable[tuple[str, str]], folder: Path) -> Iterator[tuple[dict[str, Peer], list[str]]]:
    """Yield the peers of (package, script) that work, after one measurement each, and notes about the others."""
    peers: dict[str, Peer] = {}
    notes: list[str] = []
    with ExitStack() as open_peers:
        for package, script in peer_scripts:
            try:
                peer = Peer(package, script, folder / package)
                open_peers.callback(peer.close)
                peer.measure()
            except NotMeasured as reason:
                notes.append(f"not measured: {reason}")
            else:
                peers[package] = peer
        yield peers, notes


def python_with(package: str, *more: str) -> str:
    """Return the interpreter of an environment with only these packages, based on the Python of the benchmark."""
    version = "".join(map(str, sys.version_info[:2]))
    folder = cache() / "-".join((package, *more, version))
    python = folder / "bin" / "python"
    complete = folder / "complete"
    if complete.exists():
        return str(python)
    shutil.rmtree(folder, ignore_errors=True)
    uv = find_uv(os.environ, cache())
    for arguments in (
        ["venv", "--quiet", "--no-project", "--python", sys.executable, str(folder)],
        ["pip", "install", "--quiet", "--python", str(python), *uv.settings.arguments, package, *more],
    ):
        try:
            completed = subprocess.run(
                [uv.path, *arguments], env=uv.environ, capture_output=True, text=True, timeout=_INSTALL_TIMEOUT_S
            )
        except subprocess.TimeoutExpired:
            raise NotMeasured(f"{package}: not installed within {_INSTALL_TIMEOUT_S} s") from None
        if completed.returncode != 0:
            raise NotMeasured(f"{package}: installation failed")
    complete.touch()
    return str(python)
