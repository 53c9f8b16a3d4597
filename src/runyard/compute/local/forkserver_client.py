"""Client of the forkserver, which it starts on first use and restarts if it died."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Optional

import runyard
from runyard.agent.forkserver import PACKET_BYTES
from runyard.errors import ComputeTargetException
from runyard.launch.private_variables import open_memory_file
from runyard.launch.variables import ROLE, clean_environment
from runyard.posix import descriptor_limit

_TIMEOUT_S = 30.0


class ForkserverClient:
    """Thread-safe. Requests are served one after the other; each takes a few milliseconds."""

    def __init__(self, umask: int = -1) -> None:
        """``umask`` is for scripts: the yard's own files are private, theirs need not be (-1: as the yard's)."""
        self._umask = umask
        self._lock = threading.Lock()
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._socket: Optional[socket.socket] = None

    def warm_up(self) -> None:
        """Start the server now, so that the first run does not wait for it."""
        with self._lock:
            self._connect()

    def fork_agent(self, order_path: Path, private: Optional[Mapping[str, str]] = None) -> int:
        """Start an agent for this order and return its pid, or the pid of the agent that the run already has."""
        descriptors = [open_memory_file(private)] if private else []
        try:
            with self._lock:
                try:
                    reply = self._request(order_path, descriptors)
                except (BrokenPipeError, ConnectionResetError, EOFError):  # it was killed; starting twice is harmless
                    self._disconnect()
                    reply = self._request(order_path, descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        status, _, detail = reply.partition(" ")
        if status != "ok":
            raise ComputeTargetException(f"cannot start the agent of {order_path.parent.name}: {detail}")
        return int(detail)

    def close(self) -> None:
        """Stop the server. Agents continue."""
        with self._lock:
            self._disconnect()

    def _request(self, order_path: Path, descriptors: list[int]) -> str:
        connection = self._connect()
        try:
            socket.send_fds(connection, [os.fsencode(order_path)], descriptors)
            reply = connection.recv(PACKET_BYTES)
        except TimeoutError:
            self._disconnect()  # a late reply must not be read as that of the next order
            raise ComputeTargetException(
                f"the agent of {order_path.parent.name} did not start within {_TIMEOUT_S:.0f} s",
                hint="the machine is overloaded, or the disk of the yard's home folder does not respond",
            ) from None
        if not reply:
            raise EOFError
        return reply.decode("utf-8", "replace")

    def _connect(self) -> socket.socket:
        if self._socket is not None and self._process is not None and self._process.poll() is None:
            return self._socket
        self._disconnect()
        client_end, server_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # Without `site`: an agent may use nothing but the standard library and Runyard.
        command = [sys.executable, "-S", "-m", "runyard.agent.forkserver", str(server_end.fileno())]
        package = Path(runyard.__file__).parents[1]
        variables = {**clean_environment(os.environ), "PYTHONPATH": str(package), ROLE: "forkserver"}
        with server_end:
            self._process = subprocess.Popen(
                descriptor_limit.with_original_limit(command),  # scripts inherit it
                env=variables,
                cwd="/",  # the current folder must stay free to be unmounted or deleted
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[server_end.fileno()],
                umask=self._umask,
            )
        client_end.settimeout(_TIMEOUT_S)
        self._socket = client_end
        return client_end

    def _disconnect(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._process is not None:
            try:
                self._process.wait(timeout=5)  # it exits when its socket is closed
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
