"""How an agent says that it wrote something: a datagram with the run's id. Nobody answers; nobody has to be there."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

DOORBELL = "bell.sock"  # in the home folder of whoever listens
_LONGEST = 4096


def ring(path: str, run_id: str, patience_s: float) -> None:
    """Never fails: the run's folder is read in any case, only later."""
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bell:
        bell.settimeout(patience_s)
        bell.sendto(os.fsencode(run_id), path)


def open_at(path: Path, kind: socket.SocketKind) -> socket.socket:
    """A socket of the owner's alone, in the place of one whose process is gone. It is there only when it is ready."""
    draft = path.with_name(str(os.getpid()))  # several may begin at the same moment: a host can have two names
    draft.unlink(missing_ok=True)
    opened = socket.socket(socket.AF_UNIX, kind)
    opened.bind(str(draft))
    draft.chmod(0o600)
    if kind == socket.SOCK_STREAM:
        opened.listen(512)
    draft.replace(path)
    return opened


class Doorbell:
    """``heard`` is called with the id of each run that rings, one after the other: it must not take long."""

    def __init__(self, path: Path, heard: Callable[[str], None]) -> None:
        self._bell = open_at(path, socket.SOCK_DGRAM)
        self._heard = heard
        threading.Thread(target=self._listen, name="doorbell", daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                run_id = self._bell.recv(_LONGEST)
            except OSError:  # closed
                return
            if run_id:
                self._heard(os.fsdecode(run_id))
