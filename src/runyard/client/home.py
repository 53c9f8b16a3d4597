"""The yard's home folder: where it is, and whether it can be used at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from runyard.errors import HomeUnusable
from runyard.spec.folder import HomeFolder

LONGEST_SOCKET_PATH = 107  # what the kernel takes for a unix socket


def home_folder(given: str | Path | None = None) -> Path:
    """The folder itself is made by :func:`usable`."""
    return Path(given or os.environ.get("RUNYARD_HOME") or Path.home() / ".runyard").expanduser().absolute()


def usable(home: Path) -> Path:
    """The same folder, made if it was not there; one clear error if it cannot serve."""
    socket = HomeFolder(home).socket
    length = len(os.fsencode(socket))
    if length > LONGEST_SOCKET_PATH:
        raise HomeUnusable(
            f"the path of the yard's socket is too long: {socket} has {length} bytes, "
            f"the system takes {LONGEST_SOCKET_PATH}",
            hint="set RUNYARD_HOME to a shorter folder, such as ~/.runyard or /tmp/yard",
            home=str(home),
        )
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if home.stat().st_mode & 0o077 and home.stat().st_uid == os.getuid():
            home.chmod(0o700)  # a folder made by hand; what is in it is the owner's alone
        probe = home / f".writable-{os.getpid()}"
        probe.write_bytes(b"x")
        probe.unlink(missing_ok=True)  # another thread of this process may try just now
        if not (home / ".runyardignore").exists():
            # a home inside of somebody's project must not travel with its code
            (home / ".runyardignore").write_bytes(b"*\n")
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            hint = f"free some space on the disk of {home}, or set RUNYARD_HOME to a folder elsewhere"
        else:
            hint = "set RUNYARD_HOME to a folder that you can write to"
        raise HomeUnusable(f"the yard's home folder {home} cannot be used: {error.strerror}", hint=hint) from error
    return home
