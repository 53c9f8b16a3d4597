"""Starting a script in a new session with its log file as output, and reporting why it could not start."""

from __future__ import annotations

import marshal
import os
import signal
from collections.abc import Mapping, Sequence
from typing import NoReturn, Optional

from runyard.posix.namespaces import set_host_name
from runyard.posix.prctl import die_with_parent

# Signals whose handling differs from the default in this process, and those that agents change. Computed at import:
# between fork and exec as little as possible should run.
_CHANGED_SIGNALS = {signal.SIGINT, signal.SIGHUP} | {
    number for number in signal.valid_signals() if signal.getsignal(number) not in (signal.SIG_DFL, None)
}


class SpawnError(Exception):
    """A process could not be started. The message is the reason, for users."""


class StandbyGone(SpawnError):
    """The standby process was killed while it waited; another one can be forked."""


class StandbyProcess:
    """A forked process that waits for the program to execute, so that forking does not delay the start of a run.

    Without a program it ends together with the process that forked it.
    """

    def __init__(self) -> None:
        _open_closed_streams()
        pipes = (*os.pipe(), *os.pipe())
        program_read, self._program, self._error, error_write = pipes
        try:
            agent = os.getpid()
            self.pid = os.fork()
        except OSError as error:
            for pipe in pipes:
                os.close(pipe)
            raise SpawnError(f"cannot fork its process: {error.strerror}") from error
        if self.pid == 0:
            os.close(self._program)
            os.close(self._error)
            _wait_and_execute(agent, program_read, error_write)
        os.close(program_read)
        os.close(error_write)

    def execute(
        self, argv: Sequence[str], variables: Mapping[str, str], *, cwd: str, log: str, host_name: Optional[str] = None
    ) -> None:
        """Return once the process executes the program. Raises SpawnError."""
        # UTF-8 independent of the agent's locale, so that the submitted bytes arrive unchanged
        try:
            encoded_argv = [_encode(argument) for argument in argv]
            environment = {_encode(name): _encode(value) for name, value in variables.items()}
        except UnicodeEncodeError as error:
            self.discard()
            raise SpawnError(f"cannot run {argv[0]!r}: {error.object!r} is not valid text") from error
        try:
            with open(self._program, "wb", closefd=False) as pipe:
                pipe.write(marshal.dumps((encoded_argv, environment, cwd, log, host_name)))
        except BrokenPipeError:
            self.discard()
            raise StandbyGone("cannot run the script: its process was killed while it waited") from None
        os.close(self._program)
        with open(self._error, "rb") as pipe:  # closed by a successful exec, so an empty message means success
            message = pipe.read().decode("utf-8", "replace")
        if message:
            os.waitpid(self.pid, 0)
            raise SpawnError(message)

    def discard(self) -> None:
        """End the process, and consume its SIGCHLD, which must not be taken for that of a script."""
        os.close(self._program)
        os.close(self._error)
        os.waitpid(self.pid, 0)
        signal.sigtimedwait({signal.SIGCHLD}, 0)


def spawn(
    argv: Sequence[str], variables: Mapping[str, str], *, cwd: str, log: str, host_name: Optional[str] = None
) -> int:
    """Start a program. Standard output and standard error are the same open file, so their lines stay in order, and
    there is no pipe that a slow reader could block.

    Args:
        argv: The program and its arguments.
        variables: Its complete environment.
        cwd: Its working directory.
        log: The file that its output is appended to.
        host_name: Host name that the program sees instead of the machine's.

    Returns:
        The process id, once the program is executing.

    Raises:
        SpawnError: If it cannot be executed.
    """
    process = StandbyProcess()
    process.execute(argv, variables, cwd=cwd, log=log, host_name=host_name)
    return process.pid


def _open_closed_streams() -> None:
    """Open descriptors 0 to 2 if they are closed; otherwise the next open file would be taken for one of them."""
    while True:
        descriptor = os.open(os.devnull, os.O_RDWR)
        if descriptor > 2:
            os.close(descriptor)
            return


def _wait_and_execute(agent: int, program_read: int, error_write: int) -> NoReturn:
    step = "prepare its process"
    try:
        os.setsid()
        die_with_parent()
        if os.getppid() != agent:  # the agent died before die_with_parent took effect
            os._exit(127)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        _restore_signals()
        with open(program_read, "rb") as pipe:
            program = pipe.read()
        if not program:
            os._exit(127)
        argv, environment, cwd, log, host_name = marshal.loads(program)
        step = f"write the log {log}"
        output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.dup2(output, 1)
        os.dup2(output, 2)
        if host_name is not None:
            step = (
                f"simulate {host_name} on this machine, which does not allow processes to have a separate host name"
                " (node_count=1 with more processes per node works)"
            )
            set_host_name(host_name)
        step = f"enter its folder {cwd}"
        os.chdir(cwd)
        step = f"run {argv[0].decode('utf-8', 'replace')}" if argv else "run an empty command"
        os.execvpe(argv[0], argv, environment)
    except OSError as error:
        os.write(error_write, f"cannot {step}: {error.strerror}".encode("utf-8", "replace"))
    except BaseException as error:  # noqa: BLE001  a child that returned would become a second agent
        os.write(error_write, f"cannot {step}: {error}".encode("utf-8", "replace"))
    os._exit(127)


def _restore_signals() -> None:
    """Reset signal handling: a script expects Ctrl-C, broken pipes and SIGTERM to work as in a shell."""
    for number in _CHANGED_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
