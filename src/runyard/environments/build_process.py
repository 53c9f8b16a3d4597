"""One child process that builds something: its words passed on, watched for stalls, gone when nobody wants it.

Two accidents are provided for. A downloader that hangs without a word is seen by its standing still (no output, no
processor time, no bytes), killed and started again. And a builder never outlives the yard by long: the kernel kills it
with its parent, and what slips through is found by the mark in its environment when the yard starts again.
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
from runyard.environments.pipconf import redacted
from runyard.environments.prepared import PreparationAbandoned, Say

MARK = "RUNYARD_BUILDING_IN"  # the depot's root, in the environment of every builder

_STILL_EVERY_S = 5.0
_LOOK_EVERY_S = 0.1
_KILL_S = 5.0
# Timers and keep-alives move a hung process a little; work moves it more.
_MOVED_TICKS = 3
_MOVED_BYTES = 4096
_CAN_MEASURE = Path("/proc/self/io").exists()


@dataclass(frozen=True)
class Finished:
    code: int
    output: str
    stalled: bool = False


@dataclass(frozen=True)
class Watch:
    """Whom a builder works for, and how patient it is."""

    say: Say
    abandoned: threading.Event
    root: Path
    stall_s: float = 45.0
    tries: int = 3
    last_stall_s: float = 0.0  # the last try is given at least this long: the user's own time-out


def run(
    argv: Sequence[str],
    watch: Watch,
    *,
    doing: str,
    variables: Mapping[str, str],
    cwd: Path,
    shown: Callable[[str], str | None] = lambda line: line,
) -> Finished:
    """Runs to the end, through stalls; raises only PreparationAbandoned. ``shown`` picks the lines for the log."""
    for attempt in range(1, watch.tries + 1):
        last = attempt == watch.tries
        patience_s = max(watch.stall_s, watch.last_stall_s) if last else watch.stall_s
        if not _CAN_MEASURE:
            patience_s *= 10  # words are all there is to see then, and a big download has none
        finished = _run_once(argv, watch, patience_s, doing=doing, variables=variables, cwd=cwd, shown=shown)
        if not finished.stalled:
            return finished
        ending = "giving up" if last else f"starting it again (try {attempt + 1} of {watch.tries})"
        watch.say(f"{doing}: nothing moved for {clock.duration_text(patience_s)}; {ending}")
    return finished


def kill_builders(root: Path) -> int:
    """Kills the builders that a killed yard left behind; how many there were."""
    wanted = f"{MARK}={root}".encode()
    killed = 0
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            marked = wanted in entry.read_bytes().split(b"\0")
        except OSError:
            continue
        pid = int(entry.parent.name)
        if marked and pid != os.getpid():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed += 1
    return killed


def _run_once(
    argv: Sequence[str],
    watch: Watch,
    patience_s: float,
    *,
    doing: str,
    variables: Mapping[str, str],
    cwd: Path,
    shown: Callable[[str], str | None],
) -> Finished:
    started = clock.monotonic()
    child = subprocess.Popen(
        [*_dies_with_us(), *argv],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=cwd,
        env={**variables, MARK: str(watch.root)},
        start_new_session=True,  # so that all its children are reached by their session: ninja gives each a group
    )
    assert child.stdout is not None
    lines = _Lines(child.stdout.fileno())
    said_at = moved_at = started
    meter = _Meter(child.pid)
    try:
        while True:
            exited = child.poll() is not None
            fresh = lines.read(0 if exited else _LOOK_EVERY_S)
            now = clock.monotonic()
            for line in fresh:
                text = shown(redacted(line))
                if text:
                    watch.say(text)
                    said_at = now
            # its exit counts as well as the end of its output, which a process that it left behind may hold open
            if lines.ended or (exited and not fresh):
                return Finished(child.wait(), redacted(lines.text))
            if watch.abandoned.is_set():
                raise PreparationAbandoned(f"abandoned while {doing}")
            if fresh or meter.moved():
                moved_at = now
            if now - moved_at >= patience_s:
                return Finished(-signal.SIGKILL, redacted(lines.text), stalled=True)
            if now - said_at >= _STILL_EVERY_S:
                watch.say(f"still {doing}, {clock.duration_text(now - started)}")
                said_at = now
    finally:
        _kill_session(child.pid)
        child.wait()
        child.stdout.close()


def _kill_session(session: int) -> None:
    """Looked for again until none is left: what is being started while we look is not in the list yet."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(session, signal.SIGKILL)
    until = clock.monotonic() + _KILL_S
    while alive := [pid for pid, state in _in_session(session) if state not in "ZX"]:
        for pid in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if clock.monotonic() > until:
            return  # held by the kernel, in a read of a dead disk: nobody can wait for that
        time.sleep(0.01)


def _in_session(session: int) -> Iterator[tuple[int, str]]:
    """Process ids and states, read from /proc; nothing where there is none."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                yield int(stat.parent.name), fields[0]
        except (OSError, ValueError, IndexError):
            continue


def _dies_with_us() -> tuple[str, ...]:
    """What makes the kernel kill the child together with this thread's process."""
    if not sys.platform.startswith("linux"):
        return ()
    setpriv = shutil.which("setpriv")
    if setpriv:
        return (setpriv, "--pdeathsig", "KILL", "--")
    # a program and not preexec_fn: Python code between fork and exec may deadlock in a process with threads
    return (
        sys.executable,
        "-ISc",
        "import ctypes,os,sys; ctypes.CDLL(None).prctl(1, 9); os.execvp(sys.argv[1], sys.argv[1:])",
    )


class _Lines:
    """The output of a child as it comes, in whole lines."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._poll = select.poll()  # select() knows no descriptors above 1,023
        self._poll.register(descriptor, select.POLLIN)
        self._rest = b""
        self._all: list[str] = []
        self.ended = False

    @property
    def text(self) -> str:
        return "\n".join(self._all)

    def read(self, timeout_s: float) -> list[str]:
        if not self._poll.poll(timeout_s * 1000):
            return []
        data = os.read(self._descriptor, 65536)
        self.ended = not data
        *whole, self._rest = (self._rest + (data or b"\n")).replace(b"\r", b"\n").split(b"\n")
        lines = [line.decode(errors="replace").rstrip() for line in whole]
        lines = [line for line in lines if line]
        self._all += lines
        return lines


class _Meter:
    """Whether the processes of a session move: processor time and bytes, read from /proc."""

    def __init__(self, session: int) -> None:
        self._session = session
        self._last = (0, 0)
        self._looked_at = 0.0

    def moved(self) -> bool:
        now = clock.monotonic()
        if now - self._looked_at < 1.0:
            return False
        self._looked_at = now
        ticks, count = self._measure()
        # a child that ended takes its counts with it: fewer than before is movement too
        if ticks < self._last[0] or ticks >= self._last[0] + _MOVED_TICKS or count >= self._last[1] + _MOVED_BYTES:
            self._last = (ticks, count)
            return True
        return False

    def _measure(self) -> tuple[int, int]:
        ticks = count = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
                if int(fields[3]) != self._session:
                    continue
                ticks += int(fields[11]) + int(fields[12])
                io = dict(line.split(": ") for line in (stat.parent / "io").read_text().splitlines())
                count += int(io["rchar"]) + int(io["wchar"])
            except (OSError, ValueError, KeyError, IndexError):
                continue
        return ticks, count
