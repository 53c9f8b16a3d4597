"""Peers: each in an environment of its own, made once by uv, and in a process of its own that is asked in turns."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.place import cache
from runyard.environments.venv import find_uv

_INSTALL_AT_MOST_S = 180
_SCRIPTS = Path(__file__).parent / "peer_scripts"


class NotMeasured(Exception):
    """Why a peer is not in the table."""


class Peer:
    """One process with the peer in it. `ask` has it do its work once; the answer is in seconds."""

    def __init__(self, package: str, script: str, folder: Path) -> None:
        python = python_with(package)
        folder.mkdir(parents=True, exist_ok=True)
        self.name = package
        with open(folder / "said.txt", "wb") as said:
            self._process = subprocess.Popen(
                [python, str(_SCRIPTS / script), str(folder)],
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
            )

    def ask(self) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise NotMeasured(f"{self.name}: it ended with exit code {self._process.wait()}")
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
def present(wanted: Iterable[tuple[str, str]], folder: Path) -> Iterator[tuple[dict[str, Peer], list[str]]]:
    """The peers of (package, script) that work here, each asked once already, and notes about those that do not."""
    found: dict[str, Peer] = {}
    notes: list[str] = []
    with ExitStack() as open_peers:
        for package, script in wanted:
            try:
                peer = Peer(package, script, folder / package)
                open_peers.callback(peer.close)
                peer.ask()
            except NotMeasured as why:
                notes.append(f"not measured: {why}")
            else:
                found[package] = peer
        yield found, notes


def python_with(package: str, *more: str) -> str:
    """The interpreter of an environment with the package and nothing else, by the same Python as the bench's own.

    What it needs ``more`` has a name of its own in the cache: another row may want the package alone.
    """
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
            done = subprocess.run(
                [uv.path, *arguments], env=uv.environ, capture_output=True, text=True, timeout=_INSTALL_AT_MOST_S
            )
        except subprocess.TimeoutExpired:
            raise NotMeasured(f"{package}: not installed within {_INSTALL_AT_MOST_S} s") from None
        if done.returncode != 0:
            raise NotMeasured(f"{package}: cannot be installed here")
    complete.touch()
    return str(python)
