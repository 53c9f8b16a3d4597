"""The two calls of the kernel that Python does not offer."""

from __future__ import annotations

import ctypes
import signal

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

# Looked up once: between fork and exec is no time to load libraries.
_prctl = getattr(ctypes.CDLL(None), "prctl", None)


def become_subreaper() -> bool:
    """From now on, orphaned descendants become children of this process, not of init. False where this is unknown."""
    return _prctl is not None and _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def die_with_parent() -> None:
    """The kernel kills this process when its parent dies, however the parent dies."""
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
