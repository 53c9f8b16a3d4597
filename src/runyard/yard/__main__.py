"""Entry point of the yard's process. It acquires the lock before the heavy imports: of 20 that are started
simultaneously, 19 exit early.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress

from runyard.client.home import home_folder, prepare_home
from runyard.errors import RunyardException
from runyard.posix import file_lock
from runyard.spec.folder import HomeFolder
from runyard.yard.repeated_lines import RepeatedLineFilter

IDLE_S = 600.0
log = logging.getLogger("runyard.yard")


def main() -> int:
    parser = argparse.ArgumentParser(prog="runyard.yard", description="Run the yard of one home folder.")
    parser.add_argument("--home", help="the home folder (default: RUNYARD_HOME, else ~/.runyard)")
    parser.add_argument("--detach", action="store_true", help="return when the yard accepts requests; leave it running")
    parser.add_argument("--idle-s", type=float, default=float(os.environ.get("RUNYARD_IDLE_S", IDLE_S)))
    parser.add_argument("--listen", metavar="JSON", help="run as a server on this runyard.wire.yard.ListenOptions")
    options = parser.parse_args()
    home = home_folder(options.home)
    files = HomeFolder(home)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s")
    for handler in logging.getLogger().handlers:
        handler.addFilter(RepeatedLineFilter())
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the terminal of the first client may close
    faulthandler.register(signal.SIGUSR1)  # `kill -USR1` writes the stack of every thread to yard.log
    try:
        prepare_home(home)
        lock = file_lock.acquire(files.yard_lock)
        if lock is None:
            return 0 if options.listen is None else 3  # another yard is running, and clients will find that one
        files.start_failure.unlink(missing_ok=True)
        on_listening = _detach() if options.detach else _service_manager_notifier()
        file_lock.write_holder(lock)  # detaching has changed the process id
        from runyard.spec.json import from_json
        from runyard.wire.yard import ListenOptions
        from runyard.yard.daemon import Yard
        from runyard.yard.home_lock import HomeLock

        listen = from_json(ListenOptions, json.loads(options.listen)) if options.listen else None
        Yard(home, HomeLock(files.yard_lock, lock), options.idle_s, listen).serve(on_listening)
    except RunyardException as error:
        log.error("%s", error)
        failure = {"code": type(error).__name__, "message": error.message, "hint": error.hint}
        with suppress(OSError):
            files.start_failure.write_text(json.dumps(failure), encoding="utf-8")
        return 1
    return 0


def _service_manager_notifier() -> Callable[[], None]:
    """A function that reports to systemd that the yard accepts requests; without systemd, it does nothing."""
    address = os.environ.pop("NOTIFY_SOCKET", "")  # not for the processes that the yard starts

    def on_listening() -> None:
        if address:
            with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notifier:
                notifier.sendto(b"READY=1", address.replace("@", "\0", 1) if address[0] == "@" else address)

    return on_listening


def _detach() -> Callable[[], None]:
    """Continue in a child process in a new session. Returns a function that lets the parent exit.

    The parent exits with 0 when that function is called, with 1 if the child ends before.
    """
    reader, writer = os.pipe()
    if os.fork():
        os.close(writer)
        os._exit(0 if os.read(reader, 1) else 1)
    os.close(reader)
    os.setsid()

    def on_listening() -> None:
        os.write(writer, b"!")
        os.close(writer)

    return on_listening


if __name__ == "__main__":
    sys.exit(main())
