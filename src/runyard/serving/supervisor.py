"""``python -m runyard.serving.supervisor FOLDER``: keeps one service running, with or without a yard.

It reads what is wanted from the service's folder when it starts and at each SIGHUP, makes it so, and writes what it
found. The listening sockets are its own, so that a worker may end and another one begin without a client noticing.
Standard library only: there is one of these per service, for as long as the service lives.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any, Optional

from runyard.serving.workers import Place, Version
from runyard.spec.json import from_json, to_json
from runyard.spec.service import ServiceFolder, Wanted

_LOOK_S = 1.0
_LONGEST_LOG = 64 * 1024 * 1024
_BACKLOG = 2048
DRAIN_S = 60.0


class Keeper:
    def __init__(self, folder: ServiceFolder) -> None:
        self._folder = folder
        self._wanted: Optional[Wanted] = None
        self._versions: dict[int, Version] = {}
        self._listening: Optional[socket.socket] = None
        self._address = ""
        self._error = ""
        self._ends = False
        self._rereads = True
        self._written: Any = None
        self._began = time.time()

    def run(self) -> None:
        wake, self._wakes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self._wakes)
        signal.signal(signal.SIGHUP, self._on_change)
        signal.signal(signal.SIGTERM, self._on_end)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        rotated = time.monotonic()
        while not self._ends:
            if self._rereads:
                self._rereads = False
                self._read()
            self._reap()
            self._make_it_so()
            self._tell()
            waiting: list[Any] = [wake, *(place.control for place in self._places() if place.control is not None)]
            for ready in select.select(waiting, [], [], self._until_next())[0]:
                if ready == wake:
                    with contextlib.suppress(BlockingIOError):
                        os.read(wake, 4096)
                else:
                    self._hear(ready)
            if time.monotonic() - rotated > _LOOK_S * 10:
                rotated = time.monotonic()
                self._rotate()
        for place in self._places():
            place.kill()
        self._reap()

    def _on_change(self, number: int, frame: Any) -> None:
        self._rereads = True

    def _on_end(self, number: int, frame: Any) -> None:
        self._ends = True

    def _read(self) -> None:
        try:
            wanted = from_json(Wanted, json.loads(self._folder.wanted.read_bytes()))
        except (OSError, ValueError) as error:
            self._error = f"{self._folder.wanted.name} cannot be read: {error}"
            return
        before, self._wanted, self._error = self._wanted, wanted, ""
        if before is None or (before.host, before.port) != (wanted.host, wanted.port) or self._listening is None:
            self._listen(wanted)
        for number in map(int, wanted.traffic):
            known = self._versions.get(number)
            if known is None or known.has_failed:
                try:
                    self._versions[number] = Version(self._folder, number, wanted.workers)
                except (OSError, ValueError) as error:  # its files are gone: the others serve all the same
                    self._error = f"version {number} cannot be started: {error}"
        for version in self._versions.values():
            version.resize(wanted.workers)

    def _listen(self, wanted: Wanted) -> None:
        made = socket.socket(socket.AF_INET6 if ":" in wanted.host else socket.AF_INET)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind((wanted.host, wanted.port))
            made.listen(_BACKLOG)
        except OSError as error:
            made.close()
            self._error = f"cannot listen at {wanted.host}:{wanted.port}: {error.strerror}"
            return
        if self._listening is not None:
            self._listening.close()
        self._listening, self._error = made, ""
        self._address = f"{wanted.host}:{made.getsockname()[1]}"

    def _make_it_so(self) -> None:
        wanted = self._wanted
        if wanted is None or self._listening is None:
            if wanted is not None and self._listening is None:
                self._listen(wanted)  # whoever has the port may have gone
            return
        asked = {int(number): share for number, share in wanted.traffic.items()}
        first = max(asked, key=lambda number: asked[number], default=0)
        now = time.monotonic()
        for number, version in self._versions.items():
            if number not in asked:
                continue
            socket_of = self._listening if number == first else version.own_socket()
            version.start_missing(wanted, socket_of, is_first=number == first, now=now)
        are_ready = all(number in self._versions and self._versions[number].is_ready for number in asked)
        if not asked or not are_ready:
            return  # what serves now goes on serving until all that is wanted instead is there
        said = self._said(wanted, asked)
        for number in asked:
            self._versions[number].go(said)
        if not all(self._versions[number].serves for number in asked):
            return  # one whose workers change places is not there yet
        for number in [number for number in self._versions if number not in asked]:
            version = self._versions[number]
            version.drain(DRAIN_S)
            if version.is_gone:
                version.close()
                del self._versions[number]
        for version in self._versions.values():
            version.drain_leaving(DRAIN_S)

    def _said(self, wanted: Wanted, asked: dict[int, int]) -> dict[str, Any]:
        return {
            "limits": to_json(wanted.limits),
            "keys": list(wanted.keys) if wanted.auth_enabled else [],
            "shares": {str(number): share for number, share in asked.items()},
        }

    def _hear(self, place: Any) -> None:
        for version in self._versions.values():
            for one in version.everybody():
                if one.control is place:
                    one.hear()
                    if one.failure:
                        version.failed(one.failure)
                    return

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for version in self._versions.values():
                version.ended(pid, status)

    def _places(self) -> list[Place]:
        return [place for version in self._versions.values() for place in version.everybody()]

    def _until_next(self) -> float:
        """A worker that crashed waits before it starts again."""
        now = time.monotonic()
        soonest = min((place.not_before for place in self._places() if place.not_before > now), default=now + _LOOK_S)
        return max(0.0, min(_LOOK_S, soonest - now))

    def _rotate(self) -> None:
        moved = False
        for path in (self._folder.service_log, self._folder.request_log):
            with contextlib.suppress(OSError):
                if path.stat().st_size > _LONGEST_LOG:
                    path.replace(path.with_name(f"{path.name}.1"))
                    moved = True
        if moved:
            for place in self._places():
                place.say({"reopen": True})

    def _tell(self) -> None:
        found = {
            "pid": os.getpid(),
            "began_at": self._began,
            "generation": self._wanted.generation if self._wanted is not None else 0,
            "address": self._address,
            "error": self._error,
            "versions": {str(number): version.told() for number, version in self._versions.items()},
        }
        if found == self._written:
            return
        draft = self._folder.found.with_name("found.json.draft")
        try:
            draft.write_text(json.dumps(found), encoding="utf-8")
            draft.replace(self._folder.found)
        except OSError as error:
            # on a full disk it goes on, and tells later: its end would be that of all workers
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise  # the folder is gone, and so is the service
            return
        self._written = found


def main(root: str) -> int:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until it can hear it: a change would be the end of a new keeper
    folder = ServiceFolder(Path(root))
    os.umask(0o077)
    lock = os.open(folder.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + 5.0
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:  # one is here already, or somebody looks whether one is
            if time.monotonic() > deadline:
                return 0
            time.sleep(0.02)
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    Keeper(folder).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
