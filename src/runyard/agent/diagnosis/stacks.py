"""Stack dumps of processes: Python stacks from py-spy, or the kernel's view if py-spy is not available."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.agent.process.process_tree import child_pids

if TYPE_CHECKING:
    from subprocess import Popen

_TIMEOUT_S = 10.0
_FRAME = re.compile(r"^\s+(.+) \((.+):(\d+)\)$")
_WAITING = re.compile(
    r"all_?reduce|barrier|broadcast|bcast|all_?gather|reduce_scatter|all_?to_?all|recv|send|wait|synchroni[sz]e|join"
    r"|poll|select|acquire|\binit\b|rendezvous",
    re.IGNORECASE,
)


def dump_stacks(pids: Mapping[int, int], py_spy: str) -> dict[int, str]:
    """A text per rank, taken as simultaneously as possible."""
    import subprocess  # imported here: it would slow down every start of an agent

    pids = {rank: _script_pid(pid) for rank, pid in pids.items()}
    dumps = {}
    for rank, pid in pids.items() if py_spy else ():
        try:
            dumps[rank] = subprocess.Popen(
                [py_spy, "dump", "--pid", str(pid)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
        except OSError:
            break
    texts = {}
    for rank, pid in pids.items():
        text = _output(dumps[rank]) if rank in dumps else ""
        texts[rank] = text if "Thread" in text else _kernel_state(pid) + text
    return texts


def summarize(text: str, work: Path) -> str:
    """One line: the innermost call in the user's code, and its position."""
    frames = _main_thread(text)
    for number, (function, file, line) in enumerate(frames):
        path = work / file
        if path.is_file() and work in path.resolve().parents:
            position = f"{path.relative_to(work)}:{line}"
            calls = [name for name, _, _ in reversed(frames[:number])]
            if calls:
                public = (name for name in calls if not name.startswith("_") and "wrapper" not in name)
                return f"in {next(public, calls[0])} ({position})"
            prefix = "" if function == "<module>" else f"in {function} "
            return f"{prefix}at `{_source_line(path, int(line))}` ({position})"
    if frames:
        name, file, line = frames[0]
        return f"in {name} ({file}:{line})"
    return text.partition("\n")[0]


def is_waiting(line: str) -> bool:
    return bool(_WAITING.search(line))


def _main_thread(text: str) -> list[tuple[str, str, str]]:
    """Frames of the main thread, innermost first."""
    threads = re.split(r"(?m)^Thread ", text)[1:]
    main = next((thread for thread in threads if "MainThread" in thread.partition("\n")[0]), "".join(threads[:1]))
    frames = (_FRAME.match(line) for line in main.splitlines())
    return [(frame.group(1), frame.group(2), frame.group(3)) for frame in frames if frame]


def _output(process: Popen[str]) -> str:
    import subprocess

    try:
        return process.communicate(timeout=_TIMEOUT_S)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[0]


def _script_pid(pid: int) -> int:
    """The process of the script: if the rank was started through a shell, the shell's child."""
    try:
        is_shell = Path(f"/proc/{pid}/exe").resolve().name in ("sh", "dash", "bash", "busybox")
    except OSError:
        return pid
    children = child_pids(pid) if is_shell else []
    return children[0] if children else pid


def _kernel_state(pid: int) -> str:
    files = {name: _read(Path(f"/proc/{pid}/{name}")) for name in ("wchan", "status", "stack")}
    state = re.search(r"(?m)^State:\s+(.*)$", files["status"])
    first = f"{state.group(1) if state else 'ended'}, in the kernel: {files['wchan'] or 'unknown'}"
    return "\n".join([first, "", files["stack"], files["status"]])


def _source_line(path: Path, number: int) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return lines[number - 1].strip() if number <= len(lines) else ""


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
