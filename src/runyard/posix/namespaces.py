"""Linux namespaces: a separate host name, and folders that this process and its descendants cannot write to."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence

_CLONE_NEWNS = 0x00020000
_CLONE_NEWUTS = 0x04000000
_CLONE_NEWUSER = 0x10000000
_MS_RDONLY, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_SLAVE = 0x1, 0x20, 0x1000, 0x4000, 0x80000

_libc = ctypes.CDLL(None, use_errno=True)  # at import: loading libraries between fork and exec is unsafe
_unshare = getattr(_libc, "unshare", None)
_mount = getattr(_libc, "mount", None)


def set_host_name(name: str) -> None:
    """Change the host name for this process and its descendants only. Raises OSError."""
    user, group = os.getuid(), os.getgid()
    if _unshare is None:
        raise OSError(0, "the kernel does not support namespaces")
    if _unshare(_CLONE_NEWUTS) != 0:
        # without privileges this needs a user namespace, in which user and group are mapped to themselves
        _check(_unshare(_CLONE_NEWUSER | _CLONE_NEWUTS))
        for file, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{file}", "w") as out:
                out.write(text)
    encoded = name.encode()
    _check(_libc.sethostname(encoded, len(encoded)))


def mount_read_only(paths: Sequence[str], writable: str) -> None:
    """Make ``paths`` read-only for this process and its descendants; other processes can still write to them.

    Requires privileges; without them nothing changes. A user namespace would grant them, but ranks in it could not
    share memory, and sudo would not work. A path that contains ``writable``, the home folder or the folder for
    temporary files is skipped.
    """
    if not paths:
        return
    needed = (writable, os.environ.get("HOME", writable), os.environ.get("TMPDIR", "/tmp"))
    paths = [path for path in paths if not any(_is_below(folder, path) for folder in needed)]
    if not paths or _unshare is None or _mount is None or _unshare(_CLONE_NEWNS) != 0:
        return
    if _mount(None, b"/", None, _MS_REC | _MS_SLAVE, None) != 0:  # later mounts of the machine stay visible here
        return
    for path in map(os.fsencode, paths):
        if _mount(path, path, None, _MS_BIND | _MS_REC, None) == 0:
            _mount(None, path, None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY, None)


def _is_below(path: str, folder: str) -> bool:
    path, folder = os.path.realpath(path), os.path.realpath(folder)
    return os.path.commonpath([path, folder]) == folder


def _check(result: int) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
