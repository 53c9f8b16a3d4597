"""The yard's end of the nursery: started on first use, started again should it have died."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Optional

import runyard
from runyard.agent.forkserver import PACKET
from runyard.errors import ComputeTargetException
from runyard.launch.variables import ROLE, clean

_ANSWER_S = 30.0


class Nursery:
    """``fork_agent`` may be called from any thread; starts queue up, each takes a few milliseconds."""

    def __init__(self, umask: int = -1) -> None:
        """``umask`` is for the scripts: the yard keeps its own files to itself, they do not (-1: as the yard's)."""
        self._umask = umask
        self._lock = threading.Lock()
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._socket: Optional[socket.socket] = None

    def warm_up(self) -> None:
        """Start it now, so that the first run does not wait for it."""
        with self._lock:
            self._connected()

    def fork_agent(self, order_path: Path) -> int:
        """The pid of an agent for this order, once the run has one."""
        with self._lock:
            try:
                answer = self._ask(order_path)
            except (BrokenPipeError, ConnectionResetError, EOFError):  # it was killed: a second start is harmless
                self._disconnect()
                answer = self._ask(order_path)
        word, _, rest = answer.partition(" ")
        if word != "ok":
            raise ComputeTargetException(f"the agent of {order_path.parent.name} could not be started: {rest}")
        return int(rest)

    def close(self) -> None:
        """The agents live on."""
        with self._lock:
            self._disconnect()

    def _ask(self, order_path: Path) -> str:
        connection = self._connected()
        try:
            connection.send(os.fsencode(order_path))
            answer = connection.recv(PACKET)
        except TimeoutError:
            self._disconnect()  # its late answer must not be taken for that of the next order
            raise ComputeTargetException(
                f"the agent of {order_path.parent.name} did not answer in {_ANSWER_S:.0f} s",
                hint="the machine is overloaded, or the disk of the yard's home folder does not answer",
            ) from None
        if not answer:
            raise EOFError
        return answer.decode("utf-8", "replace")

    def _connected(self) -> socket.socket:
        if self._socket is not None and self._process is not None and self._process.poll() is None:
            return self._socket
        self._disconnect()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # Without `site`: the standard library and our own package are all that an agent may use.
        command = [sys.executable, "-S", "-m", "runyard.agent.forkserver", str(theirs.fileno())]
        package = Path(runyard.__file__).parents[1]
        variables = {**clean(os.environ), "PYTHONPATH": str(package), ROLE: "nursery"}
        with theirs:
            self._process = subprocess.Popen(
                command,
                env=variables,
                cwd="/",  # a folder that somebody wants to unmount or delete must not be held
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                umask=self._umask,
            )
        ours.settimeout(_ANSWER_S)
        self._socket = ours
        return ours

    def _disconnect(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._process is not None:
            try:
                self._process.wait(timeout=5)  # it ends by itself when its socket closes
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
