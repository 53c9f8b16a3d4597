"""Process attributes that Python does not expose: the child subreaper and the parent-death signal."""

from __future__ import annotations

import ctypes
import signal

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

_prctl = getattr(ctypes.CDLL(None), "prctl", None)  # at import: loading libraries between fork and exec is unsafe


def become_subreaper() -> bool:
    """Adopt orphaned descendants of this process instead of leaving them to init. False if not supported."""
    return _prctl is not None and _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def die_with_parent() -> None:
    """Let the kernel kill this process when its parent dies, however the parent dies."""
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def outlive_parent() -> None:
    """Undo ``die_with_parent``, which a program inherits from the process that executed it."""
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, 0, 0, 0, 0)
