"""A worker's connection to the supervisor of its service.

The supervisor is not needed to serve. When it has ended, the worker starts the next one, unless the yard or another
worker was faster, and connects to it. Messages are JSON, one per packet, some with descriptors:

    to the supervisor: {"hello": {…}} with the listening socket, {"ready": true}, {"failed": text}, {"applied": 3},
        {"open": [ids]} with connections and buffers, {"buffer": id} with a buffer, {"closed": [ids]}
    to the worker: {"supervisor": {argv, variables}}, {"go": {limits, keys, shares}, "number": 2},
        {"settings": {…}, "number": 3}, {"drain": seconds}, {"reopen": true},
        {"adopt": id} with a connection and its buffer
"""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import threading
import time
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Optional

from runyard.posix import file_lock, unix_socket
from runyard.spec.service import ServiceFolder

MAX_MESSAGE_BYTES = 1 << 20
MAX_DESCRIPTORS = 200  # the kernel passes at most 253 with one message
_RETRY_S = 0.02
_START_AGAIN_S = 5.0
_CLOSE_ON_EXEC = 0x40000000  # MSG_CMSG_CLOEXEC, which not every Python has


class ControlChannel:
    """Thread-safe. ``deliver`` is called in the channel's thread with each message and its descriptors."""

    def __init__(
        self,
        folder: ServiceFolder,
        listening: socket.socket,
        describe: Callable[[], dict[str, Any]],
        deliver: Callable[[dict[str, Any], list[int]], None],
    ) -> None:
        self._folder, self._listening, self._describe, self._deliver = folder, listening, describe, deliver
        self._lock = threading.Lock()
        self._socket: Optional[socket.socket] = None
        self._unsent: deque[dict[str, Any]] = deque()
        self._supervisor_command: Optional[dict[str, Any]] = None
        self._supervisor: Optional[subprocess.Popen[bytes]] = None

    def start(self) -> None:
        self._connect()
        threading.Thread(target=self._run, name="control", daemon=True).start()

    @property
    def is_connected(self) -> bool:
        return self._socket is not None

    def send(self, message: dict[str, Any], descriptors: Sequence[int] = ()) -> bool:
        """Send without blocking. A message with descriptors is dropped if the supervisor is busy or has ended."""
        with self._lock:
            if self._socket is None:
                return False  # the greeting of the next supervisor contains the state
            if not descriptors:
                self._unsent.append(message)
                return self._flush()
            if not self._flush():
                return False
            try:
                send(self._socket, message, descriptors, socket.MSG_DONTWAIT)
            except OSError:
                return False
            return True

    def flush(self) -> None:
        with self._lock:
            self._flush()

    def _flush(self) -> bool:
        while self._unsent and self._socket is not None:
            try:
                send(self._socket, self._unsent[0], flags=socket.MSG_DONTWAIT)
            except BlockingIOError:
                return False
            except OSError:  # the supervisor has ended
                self._unsent.clear()
                return False
            self._unsent.popleft()
        return True

    def _run(self) -> None:
        while True:
            assert self._socket is not None
            message, descriptors = receive(self._socket)
            if message:
                if "supervisor" in message:
                    self._supervisor_command = message["supervisor"]
                else:
                    self._deliver(message, descriptors)
                continue
            with self._lock:
                self._socket.close()
                self._socket = None
                self._unsent.clear()
            self._connect()
            self._deliver({"connected": True}, [])

    def _connect(self) -> None:
        """Connect to the supervisor; start one if there is none. Ends the process if the service was deleted."""
        start_at = time.monotonic() + random.random() * _RETRY_S * 2  # one of the workers should be the first
        while True:
            if not self._folder.desired_state.exists():
                os._exit(1)
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            try:
                with unix_socket.short_path(self._folder.control) as path:
                    connection.connect(path)
                with self._lock:  # nothing may be sent before the greeting
                    send(connection, {"hello": self._describe()}, [self._listening.fileno()])
                    self._socket = connection
                return
            except OSError:
                connection.close()
            if time.monotonic() > start_at and not file_lock.is_held(self._folder.lock):
                start_at = time.monotonic() + _START_AGAIN_S
                self._start_supervisor()
            time.sleep(_RETRY_S)

    def _start_supervisor(self) -> None:
        if self._supervisor is not None:
            self._supervisor.poll()  # reap an earlier one
        command = self._supervisor_command
        if command is None:  # the supervisor ended before it sent the command: the yard starts the next one
            return
        try:
            with open(self._folder.supervisor_log, "ab") as log:
                self._supervisor = subprocess.Popen(
                    command["argv"],
                    env=command["variables"],
                    cwd="/",
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
        except OSError:  # the yard's Python was removed, or the machine has no process left: tried again
            return


def send(connection: socket.socket, message: dict[str, Any], descriptors: Sequence[int] = (), flags: int = 0) -> None:
    """Raises OSError."""
    # not socket.send_fds, which ignores its flags
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", descriptors))] if descriptors else []
    connection.sendmsg([json.dumps(message).encode()], rights, flags)


def receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """The next message with its descriptors; empty if the other side has ended. Raises BlockingIOError."""
    try:
        data, descriptors, _, _ = socket.recv_fds(connection, MAX_MESSAGE_BYTES, MAX_DESCRIPTORS, _CLOSE_ON_EXEC)
    except (BlockingIOError, TimeoutError):
        raise
    except OSError:
        return {}, []
    return (json.loads(data) if data else {}), descriptors
