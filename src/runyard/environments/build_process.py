"""Runs one build process: passes its output on, restarts it if it hangs, and kills it when the build is canceled.

A download that hangs without output is detected by its inactivity (no output, no processor time, no I/O), killed and
started again. No builder outlives the yard for long: the kernel kills it together with its parent, and any remaining
process is found by a variable in its environment when the yard starts again.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from runyard import clock
from runyard.environments.prepared import PreparationCanceled, ProgressCallback
from runyard.posix import descriptor_limit, procfs
from runyard.posix.pip_configuration import redact

MARKER_VARIABLE = "RUNYARD_BUILDING_IN"  # set to the manager's root for every build process

_REPORT_EVERY_S = 5.0
_POLL_S = 0.1
_MEASURE_EVERY_S = 1.0
_KILL_S = 5.0
# Timers and keep-alives cause a little activity in a hung process; real work causes more.
_MIN_TICKS = 3
_MIN_BYTES = 4096
_CAN_MEASURE = Path("/proc/self/io").exists()


@dataclass(frozen=True)
class ProcessResult:
    code: int
    output: str
    stalled: bool = False


@dataclass(frozen=True)
class BuildContext:
    """The owner of a build: where to report progress, when to stop, and how long to wait for a hung process."""

    report: ProgressCallback
    canceled: threading.Event
    root: Path
    stall_s: float = 45.0
    attempts: int = 3
    last_stall_s: float = 0.0  # minimum for the last attempt: the user's own time-out


def run(
    argv: Sequence[str],
    context: BuildContext,
    *,
    activity: str,
    variables: Mapping[str, str],
    cwd: Path,
    filter_line: Callable[[str], str | None] = lambda line: line,
) -> ProcessResult:
    """Run a process to its end, and restart it if it hangs. Raises only PreparationCanceled.

    Args:
        argv: The command.
        context: The owner of the build.
        activity: A description for messages, such as "solving".
        variables: The complete environment of the process.
        cwd: Its working directory.
        filter_line: Returns the text to report for a line of output; None for lines that are not reported.
    """
    for attempt in range(1, context.attempts + 1):
        is_last = attempt == context.attempts
        stall_s = max(context.stall_s, context.last_stall_s) if is_last else context.stall_s
        if not _CAN_MEASURE:
            stall_s *= 10  # only the output can be observed then, and a large download has none
        result = _run_once(
            argv, context, stall_s, activity=activity, variables=variables, cwd=cwd, filter_line=filter_line
        )
        if not result.stalled:
            return result
        next_step = "giving up" if is_last else f"restarting it (attempt {attempt + 1} of {context.attempts})"
        context.report(f"{activity}: no progress for {clock.duration_text(stall_s)}; {next_step}")
    return result


def kill_builders(root: Path) -> int:
    """Kill the build processes of a previous yard; return their number."""
    marker = f"\0{MARKER_VARIABLE}={root}\0".encode()
    killed = 0
    for pid in procfs.process_ids():
        if pid != os.getpid() and marker in procfs.environment(pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed += 1
    return killed


def _run_once(
    argv: Sequence[str],
    context: BuildContext,
    stall_s: float,
    *,
    activity: str,
    variables: Mapping[str, str],
    cwd: Path,
    filter_line: Callable[[str], str | None],
) -> ProcessResult:
    started_at = clock.monotonic()
    child = subprocess.Popen(
        descriptor_limit.with_original_limit([*_die_with_parent_prefix(), *argv]),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=cwd,
        env={**variables, MARKER_VARIABLE: str(context.root)},
        start_new_session=True,  # its descendants are found by their session: ninja puts each into its own group
    )
    assert child.stdout is not None
    reader = _LineReader(child.stdout.fileno())
    reported_at = active_at = started_at
    meter = _ActivityMeter(child.pid)
    try:
        while True:
            has_exited = child.poll() is not None
            lines = reader.read(0 if has_exited else _POLL_S)
            now = clock.monotonic()
            for line in lines:
                text = filter_line(redact(line))
                if text:
                    context.report(text)
                    reported_at = now
            # check also the exit: a process that the child left behind may keep its output open
            if reader.ended or (has_exited and not lines):
                return ProcessResult(child.wait(), redact(reader.text))
            if context.canceled.is_set():
                raise PreparationCanceled(f"canceled while {activity}")
            if lines or meter.is_active():
                active_at = now
            if now - active_at >= stall_s:
                return ProcessResult(-signal.SIGKILL, redact(reader.text), stalled=True)
            if now - reported_at >= _REPORT_EVERY_S:
                context.report(f"still {activity}, {clock.duration_text(now - started_at)}")
                reported_at = now
    finally:
        _kill_session(child.pid)
        child.wait()
        child.stdout.close()


def _kill_session(session: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(session, signal.SIGKILL)
    deadline = clock.monotonic() + _KILL_S
    # repeated until there are none: processes may be started during the search
    while pids := [process.pid for process in _processes_of(session) if not process.has_ended]:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if clock.monotonic() > deadline:
            return  # stuck in the kernel, for example reading from a dead disk
        time.sleep(0.01)


def _processes_of(session: int) -> Iterator[procfs.Stat]:
    for pid in procfs.process_ids():
        process = procfs.stat(pid)
        if process is not None and process.session == session:
            yield process


def _die_with_parent_prefix() -> tuple[str, ...]:
    """A command prefix that makes the kernel kill the child when this process ends."""
    if not sys.platform.startswith("linux"):
        return ()
    setpriv = shutil.which("setpriv")
    if setpriv:
        return (setpriv, "--pdeathsig", "KILL", "--")
    # a program instead of preexec_fn: Python code between fork and exec may deadlock in a process with threads
    return (
        sys.executable,
        "-ISc",
        "import ctypes,os,sys; ctypes.CDLL(None).prctl(1, 9); os.execvp(sys.argv[1], sys.argv[1:])",
    )


class _LineReader:
    """Reads the output of a child process in complete lines."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._poll = select.poll()  # select() does not support descriptors above 1,023
        self._poll.register(descriptor, select.POLLIN)
        self._rest = b""
        self._lines: list[str] = []
        self.ended = False

    @property
    def text(self) -> str:
        return "\n".join(self._lines)

    def read(self, timeout_s: float) -> list[str]:
        if not self._poll.poll(timeout_s * 1000):
            return []
        data = os.read(self._descriptor, 65536)
        self.ended = not data
        *complete, self._rest = (self._rest + (data or b"\n")).replace(b"\r", b"\n").split(b"\n")
        lines = [text for line in complete if (text := line.decode(errors="replace").rstrip())]
        self._lines += lines
        return lines


class _ActivityMeter:
    """Measures the activity of a session's processes: processor time and I/O."""

    def __init__(self, session: int) -> None:
        self._session = session
        self._last = (0, 0)
        self._measured_at = 0.0

    def is_active(self) -> bool:
        now = clock.monotonic()
        if now - self._measured_at < _MEASURE_EVERY_S:
            return False
        self._measured_at = now
        ticks, count = self._measure()
        # the counts of a child that ended are missing: fewer than before is also activity
        if ticks < self._last[0] or ticks >= self._last[0] + _MIN_TICKS or count >= self._last[1] + _MIN_BYTES:
            self._last = (ticks, count)
            return True
        return False

    def _measure(self) -> tuple[int, int]:
        """(processor ticks, bytes read and written)"""
        ticks = count = 0
        for process in _processes_of(self._session):
            ticks += process.cpu_ticks
            with contextlib.suppress(OSError, ValueError, KeyError):
                io = dict(line.split(b": ") for line in procfs.read(f"/proc/{process.pid}/io").splitlines())
                count += int(io[b"rchar"]) + int(io[b"wchar"])
        return ticks, count
