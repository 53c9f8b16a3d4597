"""Determines why a process ended from its exit code and the end of its log. Pure."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from typing import Optional

from runyard.agent.diagnosis.log_tail import LogTail
from runyard.lifecycle.state import End, EndReason

_MESSAGE_CHARACTERS = 500

_OUT_OF_MEMORY = re.compile(
    r"\bMemoryError\b|_ArrayMemoryError|OutOfMemoryError|CUDA out of memory|CUDA error: out of memory"
    r"|DefaultCPUAllocator: (?:not enough|can't allocate) memory|OOM when allocating|std::bad_alloc"
    r"|CUBLAS_STATUS_ALLOC_FAILED|\[Errno 12\] Cannot allocate memory"
)
_CHILD_WAS_KILLED = re.compile(r"killed by signal: Killed|SIGKILL|BrokenProcessPool|terminated abruptly")
_PROGRAM_ERROR = re.compile(r"^\S+: error: ")

_USUAL_CAUSES = {
    "SIGSEGV": "invalid memory access in native code; usual causes: a package built for another version of Python or "
    "of a library, or endless recursion",
    "SIGBUS": "mapped memory became inaccessible; usual causes: /dev/shm or a disk is full, or a file shrank",
    "SIGILL": "native code used an instruction that this CPU lacks; usual cause: a package built for a newer one",
    "SIGFPE": "division by zero in native code",
    "SIGABRT": "native code aborted; see the last lines of the log",
    "SIGKILL": "by a user or by the system; usual cause: not enough memory",
    "SIGTERM": "by a user, or by a system shutdown",
}


@dataclass(frozen=True)
class Stop:
    """The reason for which the agent stops the script."""

    reason: EndReason
    message: str


def explain_exit(exit_code: int, tail: LogTail, *, stop: Optional[Stop], oom_killed: bool, processes_left: int) -> End:
    """Explain the end of a process.

    Args:
        exit_code: Negative for a signal.
        tail: The end of its log.
        stop: Set if the agent stopped it.
        oom_killed: True if the kernel has killed processes during the run because memory ran out.
        processes_left: Number of processes that could not be stopped.
    """
    name = signal_name(-exit_code) if exit_code < 0 else None
    if stop is not None:
        reason, message = stop.reason, stop.message
    elif exit_code == 0:
        return End(EndReason.SUCCEEDED, exit_code=0, processes_left=processes_left)
    elif name is not None:
        reason, message = _explain_signal(name, tail, oom_killed)
    else:
        reason, message = _explain_failure(exit_code, tail, oom_killed)
    return End(
        reason,
        _one_line(message),
        exit_code=exit_code if exit_code >= 0 else None,
        signal=name,
        traceback=tail.traceback,
        last_lines="\n".join(tail.lines),
        processes_left=processes_left,
    )


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


def _explain_signal(name: str, tail: LogTail, oom_killed: bool) -> tuple[EndReason, str]:
    if name == "SIGKILL" and oom_killed:
        return EndReason.OUT_OF_MEMORY, "killed by the system: the machine ran out of memory (SIGKILL)"
    if name == "SIGABRT" and _OUT_OF_MEMORY.search("\n".join(tail.lines)):
        return EndReason.OUT_OF_MEMORY, next(line for line in reversed(tail.lines) if _OUT_OF_MEMORY.search(line))
    if name == "SIGABRT" and tail.error and tail.is_final:  # native threads often abort after a Python error
        return EndReason.SCRIPT_FAILED, f"{tail.error} (then {name})"
    cause = _USUAL_CAUSES.get(name, "")
    return EndReason.KILLED, f"killed by {name}: {cause}" if cause else f"killed by {name}"


def _explain_failure(exit_code: int, tail: LogTail, oom_killed: bool) -> tuple[EndReason, str]:
    message = _failure_message(exit_code, tail)
    killed = exit_code == 128 + signal.SIGKILL or _CHILD_WAS_KILLED.search(message)
    if _OUT_OF_MEMORY.search(message) or (oom_killed and killed):
        return EndReason.OUT_OF_MEMORY, message
    return EndReason.SCRIPT_FAILED, message


def error_line(exit_code: int, tail: LogTail) -> str:
    """The line of the log that explains the failure; empty if there is none."""
    if tail.error and tail.is_final:
        return tail.error
    # sys.exit("text") and an uncaught error both exit with 1; without a final traceback it was the text
    return tail.last_line if exit_code == 1 or _PROGRAM_ERROR.match(tail.last_line) else ""


def _failure_message(exit_code: int, tail: LogTail) -> str:
    line = error_line(exit_code, tail)
    if line:
        return line
    summary = f"exit code {exit_code}"
    if exit_code > 128:
        summary += f" ({signal_name(exit_code - 128)} of a program that it ran)"
    last_lines = " / ".join(line.strip() for line in tail.lines[-3:] if line.strip())
    return f"{summary}; last lines: {last_lines}" if last_lines else f"{summary}; no output"


def _one_line(message: str) -> str:
    line = " ".join(message.split())
    return line if len(line) <= _MESSAGE_CHARACTERS else f"{line[:_MESSAGE_CHARACTERS]} …"
