"""The yard's side of a host: connects on demand, follows the files of runs there, and reconnects when needed."""

from __future__ import annotations

import hashlib
import logging
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runyard import clock
from runyard.compute.base import Capacity
from runyard.compute.ssh import file_sync
from runyard.compute.ssh.framing import CHUNK_BYTES, ConnectionLost
from runyard.compute.ssh.openssh import Address, control_path, require_program
from runyard.compute.ssh.session import MessageHandler, Session
from runyard.compute.ssh.socket_forward import ForwardedConnections
from runyard.errors import ComputeTargetException
from runyard.posix import unix_socket
from runyard.spec.folder import HomeFolder
from runyard.spec.json import from_json

log = logging.getLogger(__name__)

FOLDER = "~/.runyard-host"
_SILENT_S = 6.0  # then users see a message; a remote agent sends a heartbeat every two seconds
_DEAD_S = 20.0  # then the connection is closed
_RETRY_S = (0.5, 5.0)
_RETRY_WITHOUT_RUNS_S = 30.0


@dataclass(frozen=True)
class HostCallbacks:
    """Called by a host's threads; they must return quickly."""

    run_changed: Callable[[str], None] = lambda run_id: None  # the folder of this run has new events
    report: Callable[[str, str], None] = lambda run_id, text: None  # run id and what the run waits for; "" = nothing
    reconnected: Callable[[], None] = lambda: None  # the host can be reached again


@dataclass
class FollowedRun:
    root: Path  # the run's folder in the yard's home
    node_rank: int
    bases: dict[str, int] = field(default_factory=dict)  # sizes of the files before this attempt
    agent_is_gone: bool = False
    agent_pid: int | None = None


class Host:
    """Every method is thread-safe and connects if it has to."""

    def __init__(
        self,
        address: Address,
        *,
        home: Path,
        kit: Path,
        callbacks: HostCallbacks | None = None,
        folder: str = "",
        last_address: str = "",
    ) -> None:
        self.address = address
        self.name = address.name
        self.last_address = last_address  # where other hosts reached it when it was attached
        self._home, self._kit, self._callbacks = home, kit, callbacks or HostCallbacks()
        self._folder = folder or FOLDER
        self._session: Session | None = None
        self._forwarded: ForwardedConnections | None = None
        self._facts: dict[str, Any] | None = None
        self._connecting = threading.Lock()
        self._lock = threading.Lock()
        self._followed: dict[str, FollowedRun] = {}
        self._closing = threading.Event()
        self._reconnector: threading.Thread | None = None
        self._callback_thread = ThreadPoolExecutor(1, f"reconnected-{address.name}")
        self.unreachable_since: float | None = None
        self.problem = ""  # the last connection error, until a connection succeeds

    @property
    def facts(self) -> dict[str, Any]:
        """The facts that the host reported when it was last connected."""
        if self._facts is None:
            self.connect()
        assert self._facts is not None
        return self._facts

    @property
    def has_facts(self) -> bool:
        """True if ``facts`` needs no connection."""
        return self._facts is not None

    @property
    def unreachable_s(self) -> float:
        """Seconds since the connection was lost; 0 while connected, and before the first attempt."""
        since = self.unreachable_since
        return 0.0 if since is None else clock.monotonic() - since

    @property
    def capacity(self) -> Capacity:
        return from_json(Capacity, self.facts["capacity"])

    def connect(self) -> Session:
        """Raises ComputeTargetException with the reason if the host cannot be reached."""
        with self._connecting:
            if self._session is not None and not self._session.has_ended:
                return self._session
            if self._closing.is_set():
                raise ComputeTargetException(f"the yard is closing; not connecting to {self.name}")
            require_program()
            control = control_path(self._home, self.address)
            yard = hashlib.sha256(f"{socket.gethostname()}:{self._home}".encode()).hexdigest()[:12]
            try:
                session = Session(
                    self.address, control, self._folder, self._kit, yard, self._on_message, self._on_session_end
                )
            except ComputeTargetException as error:
                self.problem = error.message
                if self.unreachable_since is None:
                    self.unreachable_since = clock.monotonic()
                self._start_reconnector()
                raise
            self._facts = session.facts
            was_unreachable = bool(self.problem)
            with self._lock:
                old, self._forwarded = self._forwarded, ForwardedConnections(session.send_message)
                self._session = session
                self.unreachable_since, self.problem = None, ""
                followed = list(self._followed.items())
        if old is not None:  # of a session whose end was not reported yet
            old.close()
        for run_id, run in followed:
            with suppress(ConnectionLost):
                self._follow(session, run_id, run)
        if was_unreachable:
            with suppress(RuntimeError):
                self._callback_thread.submit(self._callbacks.reconnected)
        return session

    def call(
        self,
        operation: str,
        *,
        on_message: MessageHandler | None = None,
        timeout_s: float | None = 60.0,
        retry_s: float = 0.0,
        canceled: threading.Event | None = None,
        **arguments: Any,
    ) -> Any:
        """Perform an operation of the remote agent. All of them may be repeated: retry for ``retry_s`` seconds."""
        deadline = clock.monotonic() + retry_s
        while True:
            try:
                session = self.connect()
                return session.request(
                    operation, arguments, on_message=on_message, timeout_s=timeout_s, canceled=canceled
                )
            except ConnectionLost as error:
                failure = self.lost_connection(error)
            except ComputeTargetException as error:
                if not error.facts.get("transient"):
                    raise
                failure = error
            if clock.monotonic() >= deadline or self._closing.wait(_RETRY_S[0]):
                raise failure

    def lost_connection(self, error: ConnectionLost) -> ComputeTargetException:
        message = f"the connection to {self.name} was lost: {error}"
        return ComputeTargetException(message, hint="submit again", host=self.name, transient=True)

    def run_command(self, argv: list[str], stdin: str = "", timeout_s: float = 60.0) -> tuple[int, str, str]:
        """Run a command on the host; return its exit code, stdout and stderr."""
        result = self.call("run_command", argv=argv, stdin=stdin, limit_s=timeout_s, timeout_s=timeout_s + 10)
        return int(result["code"]), str(result["stdout"]), str(result["stderr"])

    def upload_contents(self, files: dict[str, Path]) -> None:
        """Send the files, given by their digests, that the host does not have."""
        session = self.connect()
        missing = session.request("missing_contents", {"digests": sorted(files)})
        for digest in missing:
            with open(files[digest], "rb") as file:
                while True:
                    data = file.read(CHUNK_BYTES)
                    is_last = len(data) < CHUNK_BYTES
                    session.send("store_content", {"digest": digest, "is_last": is_last}, data)
                    if is_last:
                        break
        if missing and session.request("missing_contents", {"digests": missing}, timeout_s=600.0):
            raise ConnectionLost("uploaded files did not arrive")

    def follow(self, run_id: str, run: FollowedRun) -> None:
        """Copy what is written to the run's folder on the host until ``unfollow``; also once it is reachable."""
        with self._lock:
            self._followed[run_id] = run
            session = self._session
        if session is not None:
            with suppress(ConnectionLost):
                self._follow(session, run_id, run)
        self._start_reconnector()

    def unfollow(self, run_id: str) -> None:
        with self._lock:
            run = self._followed.pop(run_id, None)
            session = self._session
        if run is not None and session is not None:
            with suppress(ConnectionLost):
                session.send("unfollow", {"run_id": run_id})

    def followed(self, run_id: str) -> FollowedRun | None:
        with self._lock:
            return self._followed.get(run_id)

    def close(self) -> None:
        """Disconnect. Runs on the host continue."""
        self._closing.set()
        session = self._session
        if session is not None:
            session.close()
        self._callback_thread.shutdown(wait=False, cancel_futures=True)

    def _follow(self, session: Session, run_id: str, run: FollowedRun) -> None:
        received = file_sync.received(run.root, run.bases)
        session.send("follow", {"run_id": run_id, "node_rank": run.node_rank, "received": received})

    def _on_message(self, head: dict[str, Any], body: bytes) -> None:
        if "connection" in head:
            self._on_forwarded(head, body)
        elif "run" in head:
            run_id = str(head["run"])
            run = self.followed(run_id)
            if run is None:
                return
            if "file" in head:
                try:
                    file_sync.write(run.root, head, body, run.bases)
                except (OSError, ValueError) as error:
                    log.warning("%s: %s", self.name, error)
                    raise ConnectionLost(str(error)) from error  # sent again after what was really written
            elif "changed" in head:
                self._callbacks.run_changed(run_id)
            elif "agent_gone" in head:
                run.agent_is_gone = True

    def _on_forwarded(self, head: dict[str, Any], body: bytes) -> None:
        forwarded, session = self._forwarded, self._session
        if forwarded is None or session is None:
            return
        number = int(head["connection"])
        if not head.get("opened"):
            forwarded.receive(number, body)
            return
        try:
            connection = unix_socket.connect(HomeFolder(self._home).socket, timeout_s=2)
        except OSError:
            with suppress(ConnectionLost):
                session.send_message({"connection": number})
            return
        connection.settimeout(None)
        forwarded.add(number, connection)

    def _on_session_end(self) -> None:
        with self._lock:
            if self._session is not None and not self._session.has_ended:
                return  # another thread noticed the end first and has connected again
            self._session = None
            self.unreachable_since = clock.monotonic()
            forwarded, self._forwarded = self._forwarded, None
        if forwarded is not None:
            forwarded.close()
        if not self._closing.is_set():
            log.info("%s: the connection ended", self.name)
            self.problem = "the connection was lost"  # nothing is started there until it is restored
            self._start_reconnector()

    def _start_reconnector(self) -> None:
        with self._lock:
            if self._reconnector is None and (self._followed or self.problem) and not self._closing.is_set():
                thread = threading.Thread(target=self._stay_connected, name=f"reconnect-{self.name}", daemon=True)
                self._reconnector = thread
                thread.start()

    def _stay_connected(self) -> None:
        """While runs are followed or the host is unreachable: reconnect, and report long silence to users."""
        wait_s, is_reported = _RETRY_S[0], False
        last_message_at = clock.monotonic()
        while not self._closing.wait(wait_s):
            with self._lock:
                if not self._followed and not self.problem:
                    self._reconnector = None
                    return
                run_ids = list(self._followed)
            session = self._session
            if session is not None and session.has_ended:
                session = None
            if session is not None:
                last_message_at = session.last_message_at
                wait_s = 1.0
            silent_s = clock.monotonic() - last_message_at
            if silent_s > _SILENT_S or is_reported:
                is_reported = silent_s > _SILENT_S
                for run_id in run_ids:
                    text = f"no response from {self.name} for {silent_s:.0f} s" if is_reported else ""
                    self._callbacks.report(run_id, text)
            try:
                if session is not None and silent_s > _DEAD_S:
                    session.kill()
                elif session is None:
                    self.connect()
                    wait_s = _RETRY_S[0]
                continue
            except ComputeTargetException as error:
                log.info("%s", error.message)
            except Exception:  # such as a full disk: without this thread the host would stay disconnected
                log.exception("%s: the connection could not be restored", self.name)
            wait_s = min(wait_s * 2, _RETRY_S[1] if run_ids else _RETRY_WITHOUT_RUNS_S)
