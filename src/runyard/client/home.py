"""The yard's home folder: its path, its creation, and its checks."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from runyard.errors import HomeUnusable
from runyard.spec.folder import HomeFolder

MAX_SOCKET_PATH = 107  # bytes; the kernel's limit for unix sockets


def home_folder(path: str | Path | None = None) -> Path:
    """The absolute path of the home folder; :func:`prepare_home` creates it."""
    return Path(path or os.environ.get("RUNYARD_HOME") or Path.home() / ".runyard").expanduser().absolute()


def prepare_home(home: Path) -> Path:
    """Create the folder if needed and return it. Raises HomeUnusable if the yard cannot use it."""
    socket = HomeFolder(home).socket
    length = len(os.fsencode(socket))
    if length > MAX_SOCKET_PATH:
        raise HomeUnusable(
            f"the path of the yard's socket is too long: {socket} has {length} bytes, the limit is {MAX_SOCKET_PATH}",
            hint="set RUNYARD_HOME to a shorter folder, such as ~/.runyard or /tmp/yard",
            home=str(home),
        )
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if home.stat().st_mode & 0o077 and home.stat().st_uid == os.getuid():
            home.chmod(0o700)  # created by hand; its content is private to the owner
        probe = home / f".writable-{os.getpid()}"
        probe.write_bytes(b"x")
        probe.unlink(missing_ok=True)  # another thread of this process may have removed it
        if not (home / ".runyardignore").exists():
            # a home folder inside a project must not become part of the project's snapshots
            (home / ".runyardignore").write_bytes(b"*\n")
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            hint = f"free some space on the disk of {home}, or set RUNYARD_HOME to a folder elsewhere"
        else:
            hint = "set RUNYARD_HOME to a folder that you can write to"
        raise HomeUnusable(f"the yard's home folder {home} cannot be used: {error.strerror}", hint=hint) from error
    return home
