"""Starting the script: a new session, the log file itself as its output, and the real reason when it cannot start."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from typing import NoReturn, Optional

from runyard.agent.linux import die_with_parent, take_host_name

# Those that this process found changed, and those that agents change. Looked at once, not between fork and exec.
_CHANGED = {signal.SIGINT, signal.SIGHUP} | {
    number for number in signal.valid_signals() if signal.getsignal(number) not in (signal.SIG_DFL, None)
}


class CannotStart(Exception):
    """Its text is the reason, in a person's words."""


def start(
    argv: Sequence[str], variables: Mapping[str, str], *, cwd: str, log: str, host_name: Optional[str] = None
) -> int:
    """The pid of the new process, once it is the program that was asked for; raises CannotStart otherwise.

    Standard output and standard error are one open file, so lines stand in the order in which they were written;
    there is no pipe that a slow reader could fill or a dead one break. With a ``host_name`` it sees that one.
    """
    agent = os.getpid()
    reason_read, reason_write = os.pipe()  # closed by a successful exec, so an empty answer is a good one
    child = os.fork()
    if child == 0:
        _become(argv, variables, cwd, log, agent, reason_write, host_name)
    os.close(reason_write)
    with os.fdopen(reason_read, "rb") as pipe:
        reason = pipe.read().decode("utf-8", "replace")
    if reason:
        os.waitpid(child, 0)
        raise CannotStart(reason)
    return child


def _become(
    argv: Sequence[str],
    variables: Mapping[str, str],
    cwd: str,
    log: str,
    agent: int,
    reason_write: int,
    host_name: Optional[str],
) -> NoReturn:
    doing = "prepare its process"
    try:
        os.setsid()
        die_with_parent()
        if os.getppid() != agent:  # it died before the kernel was told that we follow it
            os._exit(127)
        doing = "open /dev/null"
        null = os.open(os.devnull, os.O_RDONLY)
        doing = f"write the log {log}"
        output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.dup2(null, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        if host_name is not None:
            doing = (
                f"play {host_name} on this machine, which gives processes no host name of their own"
                " (node_count=1 with more processes per node works)"
            )
            take_host_name(host_name)
        doing = f"enter its folder {cwd}"
        os.chdir(cwd)
        doing = f"run {argv[0]}" if argv else "run an empty command"
        _restore_signals()
        # UTF-8 whatever the locale of the agent is: the bytes that were submitted are the bytes that arrive
        environment = {_bytes(name): _bytes(value) for name, value in variables.items()}
        os.execvpe(_bytes(argv[0]), [_bytes(argument) for argument in argv], environment)
    except OSError as error:
        os.write(reason_write, f"cannot {doing}: {error.strerror}".encode("utf-8", "replace"))
    except BaseException as error:  # noqa: BLE001  a child that returned would become a second agent
        os.write(reason_write, f"cannot {doing}: {error}".encode("utf-8", "replace"))
    os._exit(127)


def _restore_signals() -> None:
    """A script expects Ctrl-C, broken pipes and SIGTERM to work as in a shell; Python and the agent changed them."""
    for number in _CHANGED:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
