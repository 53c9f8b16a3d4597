"""Why a run ended, from its exit code and its last words. Pure."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from typing import Optional

from runyard.agent.diagnosis.log_tail import LastWords
from runyard.lifecycle.state import End, EndReason

_MESSAGE_CHARACTERS = 500

_OUT_OF_MEMORY = re.compile(
    r"\bMemoryError\b|_ArrayMemoryError|OutOfMemoryError|CUDA out of memory|CUDA error: out of memory"
    r"|DefaultCPUAllocator: (?:not enough|can't allocate) memory|OOM when allocating|std::bad_alloc"
    r"|CUBLAS_STATUS_ALLOC_FAILED|\[Errno 12\] Cannot allocate memory"
)
_CHILD_WAS_KILLED = re.compile(r"killed by signal: Killed|SIGKILL|BrokenProcessPool|terminated abruptly")
_COMPLAINT = re.compile(r"^\S+: error: ")

_USUAL_CAUSES = {
    "SIGSEGV": "its native code touched memory that is not its own; usual: a package built for another version of "
    "Python or of a library, or endless recursion",
    "SIGBUS": "its native code lost memory that it had mapped; usual: /dev/shm or a disk is full, or a file shrank",
    "SIGILL": "its native code used an instruction that this processor lacks; usual: a package built for a newer one",
    "SIGFPE": "its native code divided by zero",
    "SIGABRT": "its native code gave up; the log's last lines say why",
    "SIGKILL": "by somebody, or by the system; usual: too little memory",
    "SIGTERM": "by somebody, or by the system going down",
}


@dataclass(frozen=True)
class Stop:
    """Why the agent itself stopped the script."""

    reason: EndReason
    message: str


def verdict(exit_code: int, words: LastWords, *, stop: Optional[Stop], oom_killed: bool, processes_left: int) -> End:
    """``exit_code`` is negative for a signal; ``oom_killed``: the kernel killed for want of memory meanwhile."""
    name = signal_name(-exit_code) if exit_code < 0 else None
    if stop is not None:
        reason, message = stop.reason, stop.message
    elif exit_code == 0:
        return End(EndReason.SUCCEEDED, exit_code=0, processes_left=processes_left)
    elif name is not None:
        reason, message = _killed(name, words, oom_killed)
    else:
        reason, message = _failed(exit_code, words, oom_killed)
    return End(
        reason,
        _one_line(message),
        exit_code=exit_code if exit_code >= 0 else None,
        signal=name,
        traceback=words.traceback,
        last_lines="\n".join(words.lines),
        processes_left=processes_left,
    )


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


def _killed(name: str, words: LastWords, oom_killed: bool) -> tuple[EndReason, str]:
    if name == "SIGKILL" and oom_killed:
        return EndReason.OUT_OF_MEMORY, "killed by the system: the machine ran out of memory (SIGKILL)"
    if name == "SIGABRT" and _OUT_OF_MEMORY.search("\n".join(words.lines)):
        return EndReason.OUT_OF_MEMORY, next(line for line in reversed(words.lines) if _OUT_OF_MEMORY.search(line))
    if name == "SIGABRT" and words.error and words.is_final:  # threads of native code do not outlive an error well
        return EndReason.SCRIPT_FAILED, f"{words.error} (then {name})"
    cause = _USUAL_CAUSES.get(name, "")
    return EndReason.KILLED, f"killed by {name}: {cause}" if cause else f"killed by {name}"


def _failed(exit_code: int, words: LastWords, oom_killed: bool) -> tuple[EndReason, str]:
    message = _own_words(exit_code, words)
    killed = exit_code == 128 + signal.SIGKILL or _CHILD_WAS_KILLED.search(message)
    if _OUT_OF_MEMORY.search(message) or (oom_killed and killed):
        return EndReason.OUT_OF_MEMORY, message
    return EndReason.SCRIPT_FAILED, message


def _own_words(exit_code: int, words: LastWords) -> str:
    if words.error and words.is_final:
        return words.error
    # sys.exit("text") and an uncaught error both give 1; with no traceback at the end it was the text
    if words.last_line and (exit_code == 1 or _COMPLAINT.match(words.last_line)):
        return words.last_line
    how = f"exit code {exit_code}"
    if exit_code > 128:
        how += f" ({signal_name(exit_code - 128)} of something that it ran)"
    last = " / ".join(line.strip() for line in words.lines[-3:] if line.strip())
    return f"{how}; last lines: {last}" if last else f"{how}; it wrote nothing"


def _one_line(message: str) -> str:
    line = " ".join(message.split())
    return line if len(line) <= _MESSAGE_CHARACTERS else f"{line[:_MESSAGE_CHARACTERS]} …"
