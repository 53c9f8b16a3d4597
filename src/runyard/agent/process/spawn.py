"""Starting the script: a new session, the log file itself as its output, and the real reason when it cannot start."""

from __future__ import annotations

import marshal
import os
import signal
from collections.abc import Mapping, Sequence
from typing import NoReturn, Optional

from runyard.posix.namespaces import set_host_name
from runyard.posix.prctl import die_with_parent

# Those that this process found changed, and those that agents change. Looked at once, not between fork and exec.
_CHANGED = {signal.SIGINT, signal.SIGHUP} | {
    number for number in signal.valid_signals() if signal.getsignal(number) not in (signal.SIG_DFL, None)
}


class CannotStart(Exception):
    """Its text is the reason, in a person's words."""


class ChildGone(CannotStart):
    """Somebody ended the process while it waited; another can be forked."""


class Child:
    """A process that waits to be told what to become. It may be forked ahead, so that the fork is not on a run's way;
    untold, it ends with whoever forked it."""

    def __init__(self) -> None:
        _fill_streams()
        pipes = (*os.pipe(), *os.pipe())
        told_read, self._told, self._reason, reason_write = pipes
        try:
            agent = os.getpid()
            self.pid = os.fork()
        except OSError as error:
            for pipe in pipes:
                os.close(pipe)
            raise CannotStart(f"cannot fork its process: {error.strerror}") from error
        if self.pid == 0:
            os.close(self._told)
            os.close(self._reason)
            _become(agent, told_read, reason_write)
        os.close(told_read)
        os.close(reason_write)

    def become(
        self, argv: Sequence[str], variables: Mapping[str, str], *, cwd: str, log: str, host_name: Optional[str] = None
    ) -> None:
        """Returns once it is the program that was asked for; raises CannotStart otherwise."""
        # UTF-8 whatever the locale of the agent is: the bytes that were submitted are the bytes that arrive
        try:
            words = [_bytes(argument) for argument in argv]
            environment = {_bytes(name): _bytes(value) for name, value in variables.items()}
        except UnicodeEncodeError as error:
            self.dismiss()
            raise CannotStart(f"cannot run {argv[0]!r}: {error.object!r} is not valid text") from error
        try:
            with open(self._told, "wb", closefd=False) as told:
                told.write(marshal.dumps((words, environment, cwd, log, host_name)))
        except BrokenPipeError:
            self.dismiss()
            raise ChildGone("cannot become the script: its process was ended while it waited") from None
        os.close(self._told)
        with open(self._reason, "rb") as pipe:  # closed by a successful exec, so an empty answer is a good one
            reason = pipe.read().decode("utf-8", "replace")
        if reason:
            os.waitpid(self.pid, 0)
            raise CannotStart(reason)

    def dismiss(self) -> None:
        """It is gone, with the signal of its end, which nobody is to take for that of a script."""
        os.close(self._told)
        os.close(self._reason)
        os.waitpid(self.pid, 0)
        signal.sigtimedwait({signal.SIGCHLD}, 0)


def start(
    argv: Sequence[str], variables: Mapping[str, str], *, cwd: str, log: str, host_name: Optional[str] = None
) -> int:
    """The pid of the new process, once it is the program that was asked for; raises CannotStart otherwise.

    Standard output and standard error are one open file, so lines stand in the order in which they were written;
    there is no pipe that a slow reader could fill or a dead one break. With a ``host_name`` it sees that one.
    """
    child = Child()
    child.become(argv, variables, cwd=cwd, log=log, host_name=host_name)
    return child.pid


def _fill_streams() -> None:
    """Where one of the three is closed, what is opened next would get its number, and be taken for it."""
    while True:
        opened = os.open(os.devnull, os.O_RDWR)
        if opened > 2:
            os.close(opened)
            return


def _become(agent: int, told_read: int, reason_write: int) -> NoReturn:
    doing = "prepare its process"
    try:
        os.setsid()
        die_with_parent()
        if os.getppid() != agent:  # it died before the kernel was told that we follow it
            os._exit(127)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        _restore_signals()
        with open(told_read, "rb") as told:
            words = told.read()
        if not words:
            os._exit(127)
        argv, environment, cwd, log, host_name = marshal.loads(words)
        doing = f"write the log {log}"
        output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.dup2(output, 1)
        os.dup2(output, 2)
        if host_name is not None:
            doing = (
                f"play {host_name} on this machine, which gives processes no host name of their own"
                " (node_count=1 with more processes per node works)"
            )
            set_host_name(host_name)
        doing = f"enter its folder {cwd}"
        os.chdir(cwd)
        doing = f"run {argv[0].decode('utf-8', 'replace')}" if argv else "run an empty command"
        os.execvpe(argv[0], argv, environment)
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
