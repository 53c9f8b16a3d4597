"""A host, as the yard sees it: asked when it is needed, listened to while runs are there, found again after a cut."""

from __future__ import annotations

import hashlib
import logging
import os
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
from runyard.compute.ssh.framing import CHUNK, Cut
from runyard.compute.ssh.openssh import Address, control_path, require_program
from runyard.compute.ssh.session import Heard, Line
from runyard.compute.ssh.socket_forward import Pipes
from runyard.errors import ComputeTargetException
from runyard.spec.folder import HomeFolder
from runyard.spec.json import from_json

log = logging.getLogger(__name__)

FOLDER = "~/.runyard-host"
_SILENT_S = 6.0  # then people are told; a courier says something every two seconds
_DEAD_S = 20.0  # then the connection is given up
_RETRY_S = (0.5, 5.0)
_FORGOTTEN_S = 30.0  # where no run is waiting to be heard of


@dataclass(frozen=True)
class Hooks:
    """What a host tells the yard."""

    news: Callable[[str], None]  # the folder of this run has something new that the agent said; returns at once
    say: Callable[[str, str], None]  # what a run waits for; "" = nothing any more
    back: Callable[[], None]  # a host that could not be reached can be again: whoever waits may have room


@dataclass
class Followed:
    root: Path  # the run's folder in the yard's home
    node_rank: int
    bases: dict[str, int] = field(default_factory=dict)  # what was in each file before this attempt
    is_gone: bool = False  # its agent
    agent_pid: int | None = None


class Host:
    """All verbs may be called from any thread; each connects if it has to."""

    def __init__(
        self, address: Address, *, home: Path, kit: Path, hooks: Hooks, folder: str = "", seen_at: str = ""
    ) -> None:
        self.address = address
        self.name = address.name
        self.seen_at = seen_at  # where other hosts reach it, as it was when somebody last looked
        self._home, self._kit, self._hooks = home, kit, hooks
        self._folder = folder or FOLDER
        self._line: Line | None = None
        self._pipes: Pipes | None = None
        self._facts: dict[str, Any] | None = None
        self._connecting = threading.Lock()
        self._lock = threading.Lock()
        self._followed: dict[str, Followed] = {}
        self._closing = threading.Event()
        self._keeper: threading.Thread | None = None
        self._telling = ThreadPoolExecutor(1, f"back-{address.name}")
        self.away_since: float | None = None
        self.trouble = ""

    @property
    def facts(self) -> dict[str, Any]:
        """What the host said about itself when it was last reached."""
        if self._facts is None:
            self.connect()
        assert self._facts is not None
        return self._facts

    @property
    def is_known(self) -> bool:
        """Whether it was reached before: then its facts can be had without asking it."""
        return self._facts is not None

    @property
    def away_s(self) -> float:
        """For how long it could not be reached; 0 while there is a connection, or nobody tried."""
        since = self.away_since
        return 0.0 if since is None else clock.monotonic() - since

    @property
    def capacity(self) -> Capacity:
        return from_json(Capacity, self.facts["capacity"])

    def connect(self) -> Line:
        """Raises ComputeTargetException: why it cannot be reached."""
        with self._connecting:
            if self._line is not None and not self._line.is_cut:
                return self._line
            if self._closing.is_set():
                raise ComputeTargetException(f"the yard is closing; {self.name} is not asked any more")
            require_program()
            control = control_path(self._home, self.address)
            yard = hashlib.sha256(f"{socket.gethostname()}:{self._home}".encode()).hexdigest()[:12]
            try:
                line = Line(self.address, control, self._folder, self._kit, yard, heard=self._heard, ended=self._cut)
            except ComputeTargetException as error:
                self.trouble = error.message
                if self.away_since is None:
                    self.away_since = clock.monotonic()
                self._keep()
                raise
            self._facts = line.facts
            was_in_trouble = bool(self.trouble)
            with self._lock:
                old, self._pipes = self._pipes, Pipes(line.send)
                self._line = line
                self.away_since, self.trouble = None, ""
                followed = list(self._followed.items())
        if old is not None:  # of a line whose end was not told yet
            old.close()
        for run_id, run in followed:
            with suppress(Cut):
                self._follow(line, run_id, run)
        if was_in_trouble:
            with suppress(RuntimeError):
                self._telling.submit(self._hooks.back)
        return line

    def call(
        self,
        do: str,
        *,
        heard: Heard | None = None,
        timeout_s: float | None = 60.0,
        patience_s: float = 0.0,
        abandoned: threading.Event | None = None,
        **fields: Any,
    ) -> Any:
        """Asks the courier; everything may be asked twice, so after a cut it is asked again for ``patience_s``."""
        give_up = clock.monotonic() + patience_s
        while True:
            try:
                return self.connect().ask(do, fields, heard=heard, timeout_s=timeout_s, abandoned=abandoned)
            except Cut as cut:
                failure = ComputeTargetException(
                    f"the connection to {self.name} was lost: {cut}", hint="submit again", host=self.name, passing=True
                )
            except ComputeTargetException as error:
                if not error.facts.get("passing"):
                    raise
                failure = error
            if clock.monotonic() >= give_up or self._closing.wait(_RETRY_S[0]):
                raise failure

    def run(self, argv: list[str], given: str = "", timeout_s: float | None = 60.0) -> tuple[int, str, str]:
        """A command there: its exit code, output and complaints."""
        wait_s = None if timeout_s is None else timeout_s + 10
        done = self.call("run", argv=argv, input=given, limit_s=timeout_s, timeout_s=wait_s)
        return int(done["code"]), str(done["out"]), str(done["err"])

    def bring(self, contents: dict[str, Path]) -> None:
        """Files by their digests: those that are not there yet."""
        line = self.connect()
        lacking = line.ask("lacking", {"digests": sorted(contents)})
        for digest in lacking:
            with open(contents[digest], "rb") as file:
                while True:
                    data = file.read(CHUNK)
                    line.send({"do": "content", "digest": digest, "last": len(data) < CHUNK}, data)
                    if len(data) < CHUNK:
                        break
        if lacking and line.ask("lacking", {"digests": lacking}, timeout_s=600.0):
            raise Cut("content did not arrive")

    def follow(self, run_id: str, followed: Followed) -> None:
        """From now on, what is written there is written here, until ``leave``. The host need not be there yet."""
        with self._lock:
            self._followed[run_id] = followed
            line = self._line
        if line is not None:
            with suppress(Cut):
                self._follow(line, run_id, followed)
        self._keep()

    def leave(self, run_id: str) -> None:
        with self._lock:
            known = self._followed.pop(run_id, None)
            line = self._line
        if known is not None and line is not None:
            with suppress(Cut):
                line.send({"do": "leave", "run": run_id})

    def followed(self, run_id: str) -> Followed | None:
        with self._lock:
            return self._followed.get(run_id)

    def close(self) -> None:
        """Runs there go on."""
        self._closing.set()
        line = self._line
        if line is not None:
            line.close()
        self._telling.shutdown(wait=False, cancel_futures=True)

    def _follow(self, line: Line, run_id: str, run: Followed) -> None:
        have = file_sync.have(run.root, run.bases)
        line.send({"do": "follow", "run": run_id, "node_rank": run.node_rank, "have": have})

    def _heard(self, head: dict[str, Any], body: bytes) -> None:
        if "pipe" in head:
            self._hear_pipe(head, body)
        elif "run" in head:
            run = self.followed(str(head["run"]))
            if run is None:
                return
            if "file" in head:
                try:
                    file_sync.write(run.root, head, body, run.bases)
                except (OSError, ValueError) as error:
                    log.warning("%s: %s", self.name, error)
                    raise Cut(str(error)) from error  # said again from what is really here
            elif "news" in head:
                self._hooks.news(str(head["run"]))
            elif "gone" in head:
                run.is_gone = True

    def _hear_pipe(self, head: dict[str, Any], body: bytes) -> None:
        pipes, line = self._pipes, self._line
        if pipes is None or line is None:
            return
        number = int(head["pipe"])
        if not head.get("opened"):
            pipes.receive(number, body)
            return
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.settimeout(2)
            connection.connect(os.fspath(HomeFolder(self._home).socket))
            connection.settimeout(None)
        except OSError:
            connection.close()
            with suppress(Cut):
                line.send({"pipe": number})
            return
        pipes.add(number, connection)

    def _cut(self) -> None:
        with self._lock:
            if self._line is not None and not self._line.is_cut:
                return  # somebody saw the end of the old one before this was told, and has made a new one
            self._line = None
            self.away_since = clock.monotonic()
            pipes, self._pipes = self._pipes, None
        if pipes is not None:
            pipes.close()
        if not self._closing.is_set():
            log.info("%s: the connection ended", self.name)
            self.trouble = "the connection was lost"  # until there is one again, nothing is started there
            self._keep()

    def _keep(self) -> None:
        with self._lock:
            if self._keeper is None and (self._followed or self.trouble) and not self._closing.is_set():
                self._keeper = threading.Thread(target=self._keep_connected, name=f"keep-{self.name}", daemon=True)
                self._keeper.start()

    def _keep_connected(self) -> None:
        """While runs are there, or should be: the connection is made again after a cut, and people are told of it."""
        wait_s, told = _RETRY_S[0], False
        heard_at = clock.monotonic()
        while not self._closing.wait(wait_s):
            with self._lock:
                if not self._followed and not self.trouble:
                    self._keeper = None
                    return
                runs = list(self._followed)
            line = self._line
            if line is not None and line.is_cut:
                line = None
            if line is not None:
                heard_at = line.heard_at
                wait_s = 1.0
            silent_s = clock.monotonic() - heard_at
            if silent_s > _SILENT_S or told:
                told = silent_s > _SILENT_S
                for run_id in runs:
                    self._hooks.say(run_id, f"no word from {self.name} since {silent_s:.0f} s" if told else "")
            try:
                if line is not None and silent_s > _DEAD_S:
                    line.kill()
                elif line is None:
                    self.connect()
                    wait_s = _RETRY_S[0]
                continue
            except ComputeTargetException as error:
                log.info("%s", error.message)
            except Exception:  # such as no room for a file: were this thread to end, nobody would connect again
                log.exception("%s: the connection could not be looked after", self.name)
            wait_s = min(wait_s * 2, _RETRY_S[1] if runs else _FORGOTTEN_S)
