"""Runyard's process on a host, at the other end of the SSH session: performs operations and sends new files.

It exits with the session. Runs continue without it; the next one finds them by their folders.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Optional

from runyard.agent.notify import NotificationListener
from runyard.compute.local.compute import LocalCompute
from runyard.compute.ssh.file_sync import FileSender
from runyard.compute.ssh.framing import ConnectionLost, FrameWriter, read_frame
from runyard.compute.ssh.remote_operations import RemoteOperations
from runyard.compute.ssh.socket_forward import ForwardedConnections, listen
from runyard.errors import RunyardException
from runyard.launch.variables import ROLE, clean_environment
from runyard.posix import procfs, unix_socket
from runyard.posix.machine import machine_capacity
from runyard.spec.folder import HomeFolder
from runyard.spec.json import to_json

HEARTBEAT_S = 2.0
_POLL_S = (0.03, 0.5)  # between two looks at a run: longer while nothing changes
_MAX_SOCKET_PATH = 100
_NEEDS_SOCKETS = frozenset({"write_working_copy", "start_agent", "follow"})  # their runs connect to the sockets
_OPERATIONS = [
    "agent_has_died",
    "create_data_tree",
    "lead_address",
    "missing_contents",
    "missing_data",
    "name_content",
    "report_lost_node",
    "run_command",
    "start_agent",
    "started_attempt",
    "stop",
    "stop_leftovers",
    "write_working_copy",
]
_DEFERRED = object()  # the reply is sent later


def main(folder: str, request: dict[str, Any], incoming: BinaryIO, outgoing: BinaryIO) -> None:
    os.environ[ROLE] = "remote agent"  # a search for the processes of a run must not find this one
    os.chdir("/")
    agent = RemoteAgent(Path(folder), str(request["yard"]), FrameWriter(outgoing))
    agent.start()
    try:
        agent.serve(incoming)
    finally:
        agent.close()
        outgoing.close()
    os._exit(0)  # blocked threads must not keep the process alive


class RemoteAgent:
    def __init__(self, folder: Path, yard: str, writer: FrameWriter) -> None:
        self._send = writer.write
        self._home = HomeFolder(folder / "yards" / yard)
        self._home.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._local = LocalCompute(folder)
        self._operations = RemoteOperations(folder, self._home.root, self._local)
        self._builder = Builder(folder, partial(self._until_lost, self._send))
        self._pool = ThreadPoolExecutor(16, "operation")
        self._forwarded = ForwardedConnections(self._send)
        self._followed: dict[str, RunFollower] = {}
        self._wakeup = threading.Event()
        self._has_socket = len(os.fsencode(self._home.socket)) < _MAX_SOCKET_PATH
        self._needs_sockets = False
        self._handlers: dict[str, Callable[..., Any]] = {
            **{name: getattr(self._operations, name) for name in _OPERATIONS},
            "abandon": self._builder.abandon,
            "discard": self._discard,
            "send_all": self._send_all,
            "unfollow": self._unfollow,
        }

    def start(self) -> None:
        self._send({"facts": {**facts(), "home": str(self._home.root), "has_socket": self._has_socket}})
        for target in (self._heartbeat, self._follow_runs):
            threading.Thread(target=self._until_lost, args=(target,), name=target.__name__, daemon=True).start()
        self._local.forkserver.warm_up()

    def serve(self, incoming: BinaryIO) -> None:
        with suppress(ConnectionLost):
            while (frame := read_frame(incoming)) is not None:
                self._dispatch(*frame)

    def close(self) -> None:
        self._builder.close()
        self._forwarded.close()
        self._local.close()

    def _dispatch(self, head: dict[str, Any], body: bytes) -> None:
        if "connection" in head:
            self._forwarded.receive(int(head["connection"]), body)
            return
        operation, request_id, arguments = head["op"], int(head["id"]), head["args"]
        if operation in _NEEDS_SOCKETS and not self._needs_sockets:
            # not before: a session that only inspects the host would take the sockets from one with runs
            self._open_sockets()
            self._needs_sockets = True  # from now on the heartbeat keeps them open
        if operation == "follow":  # here and now: the next request may be about this run
            self._reply(request_id, partial(self._follow, **arguments))
        elif operation == "store_content":  # in the order of arrival
            self._reply(request_id, partial(self._operations.store_content, data=body, **arguments))
        else:
            self._pool.submit(self._reply, request_id, partial(self._perform, operation, request_id, arguments))

    def _reply(self, request_id: int, work: Callable[[], Any]) -> None:
        with suppress(ConnectionLost):
            try:
                result = work()
            except RunyardException as error:
                detail = {"message": error.message, "hint": error.hint}
                self._send({"id": request_id, "error": detail, "kind": type(error).__name__})
            except (OSError, ValueError, KeyError, RuntimeError, TypeError, subprocess.SubprocessError) as error:
                detail = {"message": f"{type(error).__name__}: {error}", "hint": ""}
                self._send({"id": request_id, "error": detail, "kind": "ComputeTargetException"})
            else:
                if result is not _DEFERRED:
                    self._send({"id": request_id, "answer": result})

    def _perform(self, operation: str, request_id: int, arguments: dict[str, Any]) -> Any:
        if operation == "download":
            return self._operations.download(
                **arguments, send=lambda head, body: self._send({"id": request_id, **head}, body)
            )
        if operation == "prepare_environment":
            uv = arguments["uv"] and str(self._operations.content_path(arguments["uv"]))
            self._builder.prepare({**arguments["request"], "id": request_id}, uv)
            return _DEFERRED
        if operation not in self._handlers:
            raise ValueError(f"unknown operation {operation!r}")
        return self._handlers[operation](**arguments)

    def _follow(self, run_id: str, node_rank: int, received: dict[str, int]) -> None:
        self._followed[run_id] = RunFollower(self._operations, run_id, node_rank, received)
        self._wakeup.set()

    def _unfollow(self, run_id: str) -> None:
        self._followed.pop(run_id, None)

    def _discard(self, run_id: str, keep: tuple[str, ...] = ()) -> None:
        self._unfollow(run_id)
        self._operations.discard(run_id, keep)

    def _send_all(self, run_id: str) -> bool:
        """After the run has ended on all hosts: True when all its new files are sent, False if it is not followed."""
        follower = self._followed.get(run_id)
        if follower is not None:
            follower.send_all(self._send)
        return follower is not None

    def _open_sockets(self) -> None:
        if self._has_socket:
            with suppress(OSError):  # tried again at the next heartbeat
                listen(self._home.socket, self._forwarded, self._send)
                NotificationListener(self._home.notify_socket, self._on_notify)

    def _keep_sockets(self) -> None:
        """Reopen the sockets if another remote agent of this yard replaced them and has exited since."""
        with suppress(OSError):
            paths = (self._home.socket, self._home.notify_socket)
            if self._has_socket and not all(unix_socket.is_open(path) for path in paths):
                self._open_sockets()

    def _on_notify(self, run_id: str) -> None:
        follower = self._followed.get(run_id)
        if follower is not None:
            follower.look_now()
            self._wakeup.set()

    def _until_lost(self, work: Callable[..., None], *arguments: Any) -> None:
        with suppress(ConnectionLost):
            work(*arguments)

    def _heartbeat(self) -> None:
        while True:
            self._send({"heartbeat": True})
            if self._needs_sockets:
                self._keep_sockets()
            time.sleep(HEARTBEAT_S)

    def _follow_runs(self) -> None:
        while True:
            self._wakeup.clear()
            waits = [_POLL_S[1]]
            for follower in list(self._followed.values()):
                with suppress(OSError):  # of one run: it is tried again, and the other runs are not affected
                    waits.append(follower.look(self._send))
            self._wakeup.wait(min(waits))


class RunFollower:
    """Sends the new files of one run to the yard."""

    def __init__(self, operations: RemoteOperations, run_id: str, node_rank: int, received: dict[str, int]) -> None:
        self._operations, self._run_id, self._node_rank = operations, run_id, node_rank
        self._sender = FileSender(operations.run_folder(run_id).root, received)
        self._wait_s = _POLL_S[0]
        self._look_at = 0.0
        self._agent_is_gone = False
        self._lock = threading.Lock()

    def send_all(self, send: Callable[..., None]) -> None:
        with self._lock:
            for head, body in self._sender.changes(final=True):
                send({"run": self._run_id, **head}, body)

    def look_now(self) -> None:
        """The agent has just written an event."""
        self._wait_s, self._look_at = _POLL_S[0], 0.0

    def look(self, send: Callable[..., None]) -> float:
        """Send what is new; return the seconds until the next look."""
        now = time.monotonic()
        if now < self._look_at:
            return self._look_at - now
        # checked first: if the agent is gone, the changes below include its last event
        is_gone = not self._operations.has_agent(self._run_id, self._node_rank)
        has_changed = False
        with self._lock:
            for head, body in self._sender.changes(final=is_gone and not self._agent_is_gone):
                send({"run": self._run_id, **head}, body)
                has_changed = True
        if has_changed:
            send({"run": self._run_id, "changed": True})
        if is_gone and not self._agent_is_gone:
            send({"run": self._run_id, "agent_gone": True})
        self._agent_is_gone = is_gone
        self._wait_s = _POLL_S[0] if has_changed else min(self._wait_s * 1.5, _POLL_S[1])
        self._look_at = now + self._wait_s
        return self._wait_s


class Builder:
    """The process that builds environments on this host: started on first use, and reused."""

    def __init__(self, folder: Path, on_message: Callable[[dict[str, Any]], None]) -> None:
        self._folder, self._on_message = folder, on_message
        self._lock = threading.Lock()
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._pending: set[int] = set()  # requests of this process: if it dies, they fail, and no later ones

    def prepare(self, request: dict[str, Any], uv: str) -> None:
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._process = self._start()
            self._pending.add(int(request["id"]))
            self._write({"prepare": request, "uv": uv})

    def abandon(self, request_id: int) -> None:
        with self._lock:
            if self._process is not None:
                self._write({"abandon": request_id})

    def close(self) -> None:
        with self._lock:
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.close()  # it deletes unfinished environments and exits

    def _write(self, message: dict[str, Any]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(OSError, ValueError):  # it died: the reading thread reports that
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()

    def _start(self) -> subprocess.Popen[bytes]:
        root = self._folder / "environments"
        root.mkdir(exist_ok=True)
        process = subprocess.Popen(
            [sys.executable, "-m", "runyard.environments.remote_builder", str(root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**clean_environment(os.environ), "PYTHONPATH": str(Path(__file__).parents[3])},
            start_new_session=True,
        )
        self._pending = set()
        threading.Thread(target=self._read, args=(process, self._pending), name="builder", daemon=True).start()
        return process

    def _read(self, process: subprocess.Popen[bytes], pending: set[int]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                message = json.loads(line)
                if "say" not in message:
                    pending.discard(int(message["id"]))
                self._on_message(message)
        code = process.wait()
        with self._lock, suppress(OSError):  # later requests find that it has exited
            unanswered = list(pending)
            process.stdin.close()
        for request_id in unanswered:
            detail = {"message": f"the environment builder exited with code {code}", "hint": ""}
            self._on_message({"id": request_id, "error": detail, "kind": "EnvironmentException"})


def facts() -> dict[str, Any]:
    """The facts about this host that the yard needs."""
    uname = os.uname()
    connection = os.environ.get("SSH_CONNECTION", "").split()
    excluded = ("PWD", "OLDPWD")
    return {
        "python": sys.executable,
        "version": platform.python_version(),
        "system": uname.sysname,
        "machine": uname.machine,
        "name": uname.nodename,
        "id": f"{procfs.boot_id()}/{Path('/proc/self/ns/net').stat().st_ino}",
        "address": connection[2] if len(connection) == 4 else "127.0.0.1",
        "variables": {
            name: value
            for name, value in clean_environment(os.environ).items()
            if not name.startswith("SSH_") and name not in excluded
        },
        "capacity": to_json(machine_capacity()),
    }
