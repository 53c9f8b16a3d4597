"""Becoming the yard of a home folder. The lock comes before the heavy imports: of 20 started at once, 19 end here."""

from __future__ import annotations

import argparse
import faulthandler
import fcntl
import json
import logging
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from runyard.client.home import home_folder, usable
from runyard.errors import RunyardException
from runyard.spec.folder import HomeFolder

IDLE_S = 600.0
log = logging.getLogger("runyard.yard")


def main() -> int:
    parser = argparse.ArgumentParser(prog="runyard.yard", description="The yard of one home folder, in the foreground.")
    parser.add_argument("--home", help="its folder (default: RUNYARD_HOME, else ~/.runyard)")
    parser.add_argument("--detach", action="store_true", help="return when the yard answers, and leave it running")
    parser.add_argument("--idle-s", type=float, default=float(os.environ.get("RUNYARD_IDLE_S", IDLE_S)))
    parser.add_argument("--listen", metavar="JSON", help="be a server: where, as runyard.wire.yard.Listen")
    options = parser.parse_args()
    home = home_folder(options.home)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s")
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the terminal of the first client may close
    faulthandler.register(signal.SIGUSR1)  # `kill -USR1` writes what every thread does to yard.log
    try:
        usable(home)
        lock = _lock(home)
        if lock is None:
            return 0 if options.listen is None else 3  # another yard is here, and whoever started this one will find it
        HomeFolder(home).start_failure.unlink(missing_ok=True)
        opened = _detach() if options.detach else _nobody_waits
        os.ftruncate(lock, 0)
        os.write(lock, str(os.getpid()).encode())
        from runyard.spec.json import from_json
        from runyard.wire.yard import ListenOptions
        from runyard.yard.daemon import Yard

        listen = from_json(ListenOptions, json.loads(options.listen)) if options.listen else None
        Yard(home, options.idle_s, listen).serve(opened)
    except RunyardException as error:
        log.error("%s", error)
        said = {"code": type(error).__name__, "message": error.message, "hint": error.hint}
        with suppress(OSError):
            HomeFolder(home).start_failure.write_text(json.dumps(said), encoding="utf-8")
        return 1
    return 0


def _detach() -> Callable[[], None]:
    """Goes on in a child of nobody's. The parent stays until the child says that it is open, or has ended."""
    heard, said = os.pipe()
    if os.fork():
        os.close(said)
        os._exit(0 if os.read(heard, 1) else 1)
    os.close(heard)
    os.setsid()

    def opened() -> None:
        os.write(said, b"!")
        os.close(said)

    return opened


def _nobody_waits() -> None:
    pass


def _lock(home: Path) -> int | None:
    """The open descriptor makes this process the yard, until it ends."""
    lock = os.open(HomeFolder(home).yard_lock, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


if __name__ == "__main__":
    sys.exit(main())
