"""Where a process is: its Python stacks by py-spy, or what the kernel tells where there is none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.agent.process.process_tree import children_of

if TYPE_CHECKING:
    from subprocess import Popen

_TIMEOUT_S = 10.0
_FRAME = re.compile(r"^\s+(.+) \((.+):(\d+)\)$")
_WAITING = re.compile(
    r"all_?reduce|barrier|broadcast|bcast|all_?gather|reduce_scatter|all_?to_?all|recv|send|wait|synchroni[sz]e|join"
    r"|poll|select|acquire|\binit\b|rendezvous",
    re.IGNORECASE,
)


def dump(pids: Mapping[int, int], py_spy: str) -> dict[int, str]:
    """The text for each rank; all are looked at in the same moment, as far as that is possible."""
    import subprocess  # a cold agent would pay for it at every start

    pids = {rank: _script_of(pid) for rank, pid in pids.items()}
    asked = {}
    for rank, pid in pids.items() if py_spy else ():
        try:
            asked[rank] = subprocess.Popen(
                [py_spy, "dump", "--pid", str(pid)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
        except OSError:
            break
    texts = {}
    for rank, pid in pids.items():
        text = _answer(asked[rank]) if rank in asked else ""
        texts[rank] = text if "Thread" in text else _from_the_kernel(pid) + text
    return texts


def summary(text: str, work: Path) -> str:
    """One line: the last thing that was called in the user's own code, and where."""
    frames = _main_thread(text)
    for number, (own, file, line) in enumerate(frames):
        path = work / file
        if path.is_file() and work in path.resolve().parents:
            where = f"{path.relative_to(work)}:{line}"
            called = [name for name, _, _ in reversed(frames[:number])]
            if called:
                plain = (name for name in called if not name.startswith("_") and "wrapper" not in name)
                return f"in {next(plain, called[0])} ({where})"
            inside = "" if own == "<module>" else f"in {own} "
            return f"{inside}at `{_source(path, int(line))}` ({where})"
    if frames:
        name, file, line = frames[0]
        return f"in {name} ({file}:{line})"
    return text.partition("\n")[0]


def is_waiting(line: str) -> bool:
    return bool(_WAITING.search(line))


def _main_thread(text: str) -> list[tuple[str, str, str]]:
    """Innermost first."""
    threads = re.split(r"(?m)^Thread ", text)[1:]
    main = next((thread for thread in threads if "MainThread" in thread.partition("\n")[0]), "".join(threads[:1]))
    frames = (_FRAME.match(line) for line in main.splitlines())
    return [(found.group(1), found.group(2), found.group(3)) for found in frames if found]


def _answer(process: Popen[str]) -> str:
    import subprocess

    try:
        return process.communicate(timeout=_TIMEOUT_S)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[0]


def _script_of(pid: int) -> int:
    """A rank that is started through a shell is that shell's child."""
    try:
        is_shell = Path(f"/proc/{pid}/exe").resolve().name in ("sh", "dash", "bash", "busybox")
    except OSError:
        return pid
    below = children_of(pid) if is_shell else []
    return below[0] if below else pid


def _from_the_kernel(pid: int) -> str:
    said = {name: _read(Path(f"/proc/{pid}/{name}")) for name in ("wchan", "status", "stack")}
    state = re.search(r"(?m)^State:\s+(.*)$", said["status"])
    first = f"{state.group(1) if state else 'gone'}, in the kernel: {said['wchan'] or 'unknown'}"
    return "\n".join([first, "", said["stack"], said["status"]])


def _source(path: Path, number: int) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return lines[number - 1].strip() if number <= len(lines) else ""


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
