"""The limit of open files: raised for a server, and not passed on to the programs that it starts."""

from __future__ import annotations

import resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_ENOUGH = 16_384
_original_limit = 0  # 0: not raised


def raise_limit() -> int:
    """Raise this process's soft limit as far as the system allows, and return it."""
    global _original_limit
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    new_limit = _ENOUGH if hard == resource.RLIM_INFINITY else min(_ENOUGH, hard)
    if soft == resource.RLIM_INFINITY or soft >= new_limit:
        return _ENOUGH if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (new_limit, hard))
    _original_limit = soft
    return new_limit


def with_original_limit(argv: Sequence[str]) -> list[str]:
    """The command that runs ``argv`` with the limit that the user had set.

    Programs behave differently with a high limit: some use a table of that size, others fail on descriptors above
    1023. Not a `preexec_fn`, which can deadlock in a process with threads. The process id stays the same.
    """
    if not _original_limit:
        return list(argv)
    return ["/bin/sh", "-c", 'ulimit -S -n "$0"; exec "$@"', str(_original_limit), *argv]
