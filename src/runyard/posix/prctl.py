"""The calls of the kernel that Python does not offer."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

_CLONE_NEWNS = 0x00020000
_CLONE_NEWUTS = 0x04000000
_CLONE_NEWUSER = 0x10000000
_MS_RDONLY, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_SLAVE = 0x1, 0x20, 0x1000, 0x4000, 0x80000

# Looked up once: between fork and exec is no time to load libraries.
_libc = ctypes.CDLL(None, use_errno=True)
_prctl = getattr(_libc, "prctl", None)
_unshare = getattr(_libc, "unshare", None)
_mount = getattr(_libc, "mount", None)


def become_subreaper() -> bool:
    """From now on, orphaned descendants become children of this process, not of init. False where this is unknown."""
    return _prctl is not None and _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def die_with_parent() -> None:
    """The kernel kills this process when its parent dies, however the parent dies."""
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def take_host_name(name: str) -> None:
    """This process and what descends from it see another host name than the machine's. Raises OSError."""
    user, group = os.getuid(), os.getgid()
    if _unshare is None:
        raise OSError(0, "the kernel does not offer it")
    if _unshare(_CLONE_NEWUTS) != 0:
        # without privileges only in a user namespace of its own, in which everybody stays who they are
        _checked(_unshare(_CLONE_NEWUSER | _CLONE_NEWUTS))
        for file, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{file}", "w") as out:
                out.write(text)
    encoded = name.encode()
    _checked(_libc.sethostname(encoded, len(encoded)))


def see_read_only(paths: Sequence[str], own: str) -> None:
    """This process and what descends from it cannot write there any more; everybody else can.

    It takes privileges: without them, everything stays as it is. They could be had in a user namespace, but there
    ranks cannot share their memory, and sudo does not work. A path around what a script needs to write stays, too.
    """
    if not paths:
        return
    needed = [os.path.realpath(place) for place in (own, os.environ.get("HOME", own), os.environ.get("TMPDIR", "/tmp"))]
    paths = [path for path in paths if not any(_is_below(place, os.path.realpath(path)) for place in needed)]
    if not paths or _unshare is None or _mount is None or _unshare(_CLONE_NEWNS) != 0:
        return
    if _mount(None, b"/", None, _MS_REC | _MS_SLAVE, None) != 0:  # what others mount later is seen here as well
        return
    for path in paths:
        place = os.fsencode(path)
        if _mount(place, place, None, _MS_BIND | _MS_REC, None) == 0:
            _mount(None, place, None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY, None)


def _is_below(path: str, folder: str) -> bool:
    return os.path.commonpath([path, folder]) == folder


def _checked(result: int) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
