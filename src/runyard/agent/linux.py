"""The calls of the kernel that Python does not offer."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

_CLONE_NEWUTS = 0x04000000
_CLONE_NEWUSER = 0x10000000

# Looked up once: between fork and exec is no time to load libraries.
_libc = ctypes.CDLL(None, use_errno=True)
_prctl = getattr(_libc, "prctl", None)
_unshare = getattr(_libc, "unshare", None)


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


def _checked(result: int) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
