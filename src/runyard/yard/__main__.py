"""Becoming the yard of a home folder. The lock comes before the heavy imports: of 20 that start at once, 19 end here."""

from __future__ import annotations

import argparse
import fcntl
import json
import logging
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

from runyard.client.home import home_folder, usable
from runyard.errors import RunyardException

IDLE_S = 600.0
log = logging.getLogger("runyard.yard")


def main() -> int:
    parser = argparse.ArgumentParser(prog="runyard.yard", description="The yard of one home folder, in the foreground.")
    parser.add_argument("--home", help="its folder (default: RUNYARD_HOME, else ~/.runyard)")
    parser.add_argument("--idle-s", type=float, default=float(os.environ.get("RUNYARD_IDLE_S", IDLE_S)))
    options = parser.parse_args()
    home = home_folder(options.home)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s")
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the terminal of the first client may close
    try:
        usable(home)
        if not _lock(home):
            return 0  # another yard is here, and whoever started this one will find it
        (home / "yard.failure.json").unlink(missing_ok=True)
        from runyard.yard.house import Yard

        Yard(home, options.idle_s).serve()
    except RunyardException as error:
        log.error("%s", error)
        said = {"code": type(error).__name__, "message": error.message, "hint": error.hint}
        with suppress(OSError):
            (home / "yard.failure.json").write_text(json.dumps(said), encoding="utf-8")
        return 1
    return 0


def _lock(home: Path) -> bool:
    """True makes this process the yard, until it ends: the descriptor is left open on purpose."""
    lock = os.open(home / "yard.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return False
    os.ftruncate(lock, 0)
    os.write(lock, str(os.getpid()).encode())
    return True


if __name__ == "__main__":
    sys.exit(main())
