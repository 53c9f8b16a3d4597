"""One SSH session with the remote agent on a host: requests with their replies, and messages that it sends unasked."""

from __future__ import annotations

import itertools
import json
import logging
import queue
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from runyard import clock, errors
from runyard.compute.ssh import bootstrap, bundle
from runyard.compute.ssh.framing import ConnectionLost, FrameWriter, read_frame
from runyard.compute.ssh.openssh import Address, close_shared_connection, command, explain
from runyard.compute.ssh.python_install import install_python
from runyard.errors import ComputeTargetException, RunyardException

log = logging.getLogger(__name__)

MessageHandler = Callable[[dict[str, Any], bytes], None]
_Replies = queue.SimpleQueue["tuple[dict[str, Any], bytes] | None"]

_POLL_S = 0.2
_ABANDON_TIMEOUT_S = 60.0
_CONNECT_TIMEOUT_S = 60.0  # to log in and find a Python
_MAX_PROFILE_OUTPUT_BYTES = 1 << 20  # printed by the user's shell profile before the bootstrap program


class _NoPython(Exception):
    """The text is the host's platform."""


class Session:
    """Connects in the constructor.

    ``on_message`` receives messages that are not replies; ``on_end`` is called once, when the connection has ended.
    """

    def __init__(
        self,
        address: Address,
        control: Path,
        folder: str,
        kit: Path,
        yard: str,
        on_message: MessageHandler,
        on_end: Callable[[], None],
    ) -> None:
        self._address, self._control = address, control
        self._on_message, self._on_end = on_message, on_end
        self._request_ids = itertools.count(1)
        self._pending: dict[int, _Replies] = {}
        self._lock = threading.Lock()
        self.has_ended = self._is_disconnected = self._is_closing = False
        self.last_message_at = clock.monotonic()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the session
        try:
            self.facts = self._connect(folder, kit, yard)
        except _NoPython as error:
            self._close_process()
            try:
                install_python(address, control, str(error))
            except BaseException:
                self.kill()
                self._stderr.close()
                raise
            self.facts = self._connect(folder, kit, yard)
        self._writer = FrameWriter(self._stdin)
        threading.Thread(target=self._receive, name=f"session-{address.name}", daemon=True).start()

    def request(
        self,
        operation: str,
        arguments: dict[str, Any],
        *,
        on_message: MessageHandler | None = None,
        timeout_s: float | None = 60.0,
        canceled: threading.Event | None = None,
    ) -> Any:
        """Perform an operation on the host and return its result.

        Args:
            operation: A name in ``remote_agent``.
            arguments: Its arguments.
            on_message: Receives the messages that precede the result.
            timeout_s: Longest time without a message.
            canceled: When it is set, the host is notified and replies with an error soon.

        Raises:
            ConnectionLost: The session ended before the result arrived.
            RunyardException: The error of the operation.
        """
        request_id = next(self._request_ids)
        replies: _Replies = queue.SimpleQueue()
        with self._lock:
            if self.has_ended:
                raise ConnectionLost("the connection ended")
            self._pending[request_id] = replies
        try:
            self._writer.write({"op": operation, "id": request_id, "args": arguments})
            while True:
                try:
                    frame = replies.get(timeout=timeout_s if canceled is None else _POLL_S)
                except queue.Empty:
                    if canceled is None:
                        raise ConnectionLost(f"no reply within {timeout_s} s") from None
                    if canceled.is_set():
                        self.send("abandon", {"request_id": request_id})
                        canceled = None
                        timeout_s = _ABANDON_TIMEOUT_S
                    continue
                if frame is None:
                    raise ConnectionLost("the connection ended")
                head, body = frame
                if "answer" in head:
                    return head["answer"]
                if "error" in head:
                    raise _error(head, self._address.name)
                if on_message is not None:
                    on_message(head, body)
        finally:
            self._pending.pop(request_id, None)

    def send(self, operation: str, arguments: dict[str, Any], body: bytes = b"") -> None:
        """Request an operation without waiting for its result."""
        self._writer.write({"op": operation, "id": 0, "args": arguments}, body)

    def send_message(self, head: dict[str, Any], body: bytes = b"") -> None:
        self._writer.write(head, body)

    def kill(self) -> None:
        """End the session and the shared connection: the host does not respond."""
        self._disconnect("exit")

    def close(self) -> None:
        self._is_closing = True  # first: the receiving thread sees the remote agent's exit immediately
        with suppress(OSError):
            self._stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=2)
        self._disconnect("stop")

    def _disconnect(self, how: str) -> None:
        """Only once: a second time, the shared connection would be one that a newer session has opened."""
        with self._lock:
            if self._is_disconnected:
                return
            self._is_disconnected = True
        self._process.kill()
        close_shared_connection(self._address, self._control, how)

    def _connect(self, folder: str, kit: Path, yard: str) -> dict[str, Any]:
        self._process = subprocess.Popen(
            command(self._address, self._control, (bootstrap.COMMAND,)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,  # a file: the shared connection outlives the session and would keep a pipe open
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        timeout = threading.Timer(_CONNECT_TIMEOUT_S, self._process.kill)
        timeout.start()
        try:
            return self._bootstrap(folder, kit, yard)
        except _NoPython:
            raise
        except BaseException:
            self.kill()
            self._close_files()
            raise
        finally:
            timeout.cancel()

    def _bootstrap(self, folder: str, kit: Path, yard: str) -> dict[str, Any]:
        parts = [bundle.runtime_bundle(kit), bundle.node_package(kit)]
        names = [name for name, _ in parts]
        request = {"folder": folder, "parts": names, "yard": yard, "marker": bootstrap.READY}
        try:
            self._stdin.write(bootstrap.program() + json.dumps(request).encode() + b"\n")
            self._stdin.flush()
            reply = self._bootstrap_reply()
            if reply["problem"]:
                raise ComputeTargetException(
                    f"cannot use the folder {reply['folder']} on {self._address.name}: {reply['problem']}",
                    hint="folder= sets another one",
                )
            if reply["system"] != "Linux":
                raise ComputeTargetException(f"{self._address.name} runs {reply['system']}; hosts must run Linux")
            for name, archive in parts:
                if name in reply["missing"]:
                    self._stdin.write(f"{len(archive)}\n".encode() + archive)
                    self._stdin.flush()
            frame = read_frame(self._stdout)
        except (OSError, ConnectionLost) as error:
            raise self._connect_error() from error
        if frame is None:
            raise self._connect_error()
        return {**frame[0]["facts"], "folder": reply["folder"], "parts": names}

    def _bootstrap_reply(self) -> dict[str, Any]:
        """Skips the output of the user's shell profile."""
        size = 0
        while size < _MAX_PROFILE_OUTPUT_BYTES:
            line = self._stdout.readline()
            if not line:
                raise self._connect_error()
            size += len(line)
            marker, _, rest = line.decode("utf-8", "replace").strip().partition(" ")
            if marker == bootstrap.READY:
                reply: dict[str, Any] = json.loads(rest)
                return reply
            if marker == bootstrap.NO_PYTHON:
                raise _NoPython(rest)
        raise ComputeTargetException(f"the shell profile of {self._address.name} prints too much output at login")

    def _connect_error(self) -> ComputeTargetException:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5)
        self._stderr.seek(0)
        if self._process.returncode == -signal.SIGKILL:
            message = f"{self._address.name} did not respond within {_CONNECT_TIMEOUT_S:.0f} s"
            return ComputeTargetException(message, hint="is it overloaded?", transient=True)
        return explain(self._address, self._stderr.read().decode("utf-8", "replace"))

    def _receive(self) -> None:
        try:
            while (frame := read_frame(self._stdout)) is not None:
                self._dispatch(*frame)
        except ConnectionLost:
            pass
        except Exception:  # the session must be marked as ended: callers would wait without limit
            log.exception("%s: a message could not be processed", self._address.name)
        self._disconnect("stop" if self._is_closing else "exit")  # "stop": other sessions may share the connection
        with self._lock:
            self.has_ended = True
            pending = list(self._pending.values())
        for replies in pending:
            replies.put(None)
        self._close_files()
        self._on_end()

    def _dispatch(self, head: dict[str, Any], body: bytes) -> None:
        self.last_message_at = clock.monotonic()
        if "id" not in head:
            self._on_message(head, body)
            return
        replies = self._pending.get(int(head["id"]))
        if replies is not None:
            replies.put((head, body))

    def _close_files(self) -> None:
        self._close_process()
        with suppress(OSError):
            self._stderr.close()

    def _close_process(self) -> None:
        self._process.wait()
        for stream in (self._stdin, self._stdout):
            with suppress(OSError):
                stream.close()


def _error(head: dict[str, Any], host: str) -> RunyardException:
    error_class = getattr(errors, str(head["kind"]), ComputeTargetException)
    detail = head["error"]
    error: RunyardException = error_class(f"{host}: {detail['message']}", hint=detail["hint"])
    return error
