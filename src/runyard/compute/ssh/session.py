"""One connection to a host, from the first word to the last: requests with their answers, and what comes unasked."""

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
from runyard.compute.ssh.framing import Cut, Writer, read
from runyard.compute.ssh.openssh import Address, command, explained, hang_up
from runyard.compute.ssh.python_install import lend_python
from runyard.errors import ComputeTargetException, RunyardException

log = logging.getLogger(__name__)

Heard = Callable[[dict[str, Any], bytes], None]

_LOOK_S = 0.2
_ABANDON_S = 60.0
_ARRIVE_S = 60.0  # to log in, and to find a Python there
_GREETING_BYTES = 1 << 20  # of whatever a profile prints before us


class _NoPython(Exception):
    """Its text is what kind of machine the host is."""


class Line:
    """Open when it is made. ``heard`` gets what nobody asked for; ``ended`` is called once, when it is cut."""

    def __init__(
        self,
        address: Address,
        control: Path,
        folder: str,
        kit: Path,
        yard: str,
        heard: Heard,
        ended: Callable[[], None],
    ) -> None:
        self._address, self._control = address, control
        self._heard, self._ended = heard, ended
        self._numbers = itertools.count(1)
        self._asked: dict[int, queue.SimpleQueue[tuple[dict[str, Any], bytes] | None]] = {}
        self._lock = threading.Lock()
        self.is_cut = self._has_hung_up = self._is_closing = False
        self.heard_at = clock.monotonic()
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the line
        try:
            self.facts = self._dial(folder, kit, yard)
        except _NoPython as lacking:
            self._close_process()
            try:
                lend_python(address, control, str(lacking))
            except BaseException:
                self.kill()
                self._complaints.close()
                raise
            self.facts = self._dial(folder, kit, yard)
        self._writer = Writer(self._stdin)
        threading.Thread(target=self._listen, name=f"line-{address.name}", daemon=True).start()

    def ask(
        self,
        do: str,
        fields: dict[str, Any],
        *,
        heard: Heard | None = None,
        timeout_s: float | None = 60.0,
        abandoned: threading.Event | None = None,
    ) -> Any:
        """The host's answer; its error raised. Cut when the connection ends before. When it is ``abandoned``, the host
        is told, and answers with an error soon."""
        number = next(self._numbers)
        answers: queue.SimpleQueue[tuple[dict[str, Any], bytes] | None] = queue.SimpleQueue()
        with self._lock:
            if self.is_cut:
                raise Cut("the connection ended")
            self._asked[number] = answers
        try:
            self._writer.write({"do": do, "id": number, **fields})
            while True:
                try:
                    frame = answers.get(timeout=timeout_s if abandoned is None else _LOOK_S)
                except queue.Empty:
                    if abandoned is None:
                        raise Cut(f"no answer in {timeout_s} s") from None
                    if abandoned.is_set():
                        self._writer.write({"do": "abandon", "id": 0, "which": number})
                        abandoned = None
                        timeout_s = _ABANDON_S
                    continue
                if frame is None:
                    raise Cut("the connection ended")
                head, body = frame
                if "answer" in head:
                    return head["answer"]
                if "error" in head:
                    raise _error(head, self._address.name)
                if heard is not None:
                    heard({**head, "id": number}, body)
        finally:
            self._asked.pop(number, None)

    def send(self, head: dict[str, Any], body: bytes = b"") -> None:
        """Without an answer."""
        self._writer.write({"id": 0, **head}, body)

    def kill(self) -> None:
        """Also what is shared: it leads to a host that does not answer."""
        self._hang_up("exit")

    def close(self) -> None:
        self._is_closing = True  # first: the end of the courier is heard at once
        with suppress(OSError):
            self._stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=2)
        self._hang_up("stop")

    def _hang_up(self, how: str) -> None:
        """Once: by the second time, the shared connection would be one that somebody else has just made."""
        with self._lock:
            if self._has_hung_up:
                return
            self._has_hung_up = True
        self._process.kill()
        hang_up(self._address, self._control, how)

    def _dial(self, folder: str, kit: Path, yard: str) -> dict[str, Any]:
        self._process = subprocess.Popen(
            command(self._address, self._control, (bootstrap.COMMAND,)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,  # a file: the shared connection outlives us and would hold a pipe open
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        too_late = threading.Timer(_ARRIVE_S, self._process.kill)
        too_late.start()
        try:
            return self._arrive(folder, kit, yard)
        except _NoPython:
            raise
        except BaseException:
            self.kill()
            self._close_files()
            raise
        finally:
            too_late.cancel()

    def _arrive(self, folder: str, kit: Path, yard: str) -> dict[str, Any]:
        parts = [bundle.office(kit), bundle.kit(kit)]
        names = [name for name, _ in parts]
        asked = {"folder": folder, "parts": names, "yard": yard, "word": bootstrap.HERE}
        try:
            self._stdin.write(bootstrap.program() + json.dumps(asked).encode() + b"\n")
            self._stdin.flush()
            said = self._first_words()
            if said["problem"]:
                raise ComputeTargetException(
                    f"the folder {said['folder']} on {self._address.name} cannot be used: {said['problem']}",
                    hint="folder= names another one there",
                )
            if said["system"] != "Linux":
                raise ComputeTargetException(f"{self._address.name} is a {said['system']} machine; hosts run Linux")
            for name, archive in parts:
                if name in said["missing"]:
                    self._stdin.write(f"{len(archive)}\n".encode() + archive)
                    self._stdin.flush()
            frame = read(self._stdout)
        except (OSError, Cut) as error:
            raise self._why() from error
        if frame is None:
            raise self._why()
        return {**frame[0]["facts"], "folder": said["folder"], "parts": names}

    def _first_words(self) -> dict[str, Any]:
        """Past the greetings of some profile."""
        greeting = 0
        while greeting < _GREETING_BYTES:
            line = self._stdout.readline()
            if not line:
                raise self._why()
            greeting += len(line)
            word, _, rest = line.decode("utf-8", "replace").strip().partition(" ")
            if word == bootstrap.HERE:
                found: dict[str, Any] = json.loads(rest)
                return found
            if word == bootstrap.NO_PYTHON:
                raise _NoPython(rest)
        raise ComputeTargetException(f"{self._address.name} prints without end when somebody logs in")

    def _why(self) -> ComputeTargetException:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5)
        self._complaints.seek(0)
        if self._process.returncode == -signal.SIGKILL:
            return ComputeTargetException(
                f"{self._address.name} did not answer in {_ARRIVE_S:.0f} s", hint="is it overloaded?", passing=True
            )
        return explained(self._address, self._complaints.read().decode("utf-8", "replace"))

    def _listen(self) -> None:
        try:
            self._listen_to_the_end()
        except Cut:
            pass
        except Exception:  # a line that nobody reads and nobody knows to be cut: everybody would wait for ever
            log.exception("%s: what it said could not be taken", self._address.name)
        self._hang_up("stop" if self._is_closing else "exit")  # others who share the connection are not done with it
        with self._lock:
            self.is_cut = True
            waiting = list(self._asked.values())
        for answers in waiting:
            answers.put(None)
        self._close_files()
        self._ended()

    def _listen_to_the_end(self) -> None:
        while True:
            frame = read(self._stdout)
            if frame is None:
                return
            self.heard_at = clock.monotonic()
            head, body = frame
            if "id" in head:
                answers = self._asked.get(int(head["id"]))
                if answers is not None:
                    answers.put((head, body))
            else:
                self._heard(head, body)

    def _close_files(self) -> None:
        self._close_process()
        with suppress(OSError):
            self._complaints.close()

    def _close_process(self) -> None:
        self._process.wait()
        for stream in (self._stdin, self._stdout):
            with suppress(OSError):
                stream.close()


def _error(head: dict[str, Any], host: str) -> RunyardException:
    kind = getattr(errors, str(head["kind"]), ComputeTargetException)
    said = head["error"]
    error: RunyardException = kind(f"{host}: {said['message']}", hint=said["hint"])
    return error
