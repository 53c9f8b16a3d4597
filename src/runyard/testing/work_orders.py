"""Work orders for tests of compute targets and agents, and the results of their runs."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runyard.launch.order import Node, WorkOrder
from runyard.launch.variables import PROCESS_TAG, process_tag
from runyard.lifecycle.state import End
from runyard.spec.folder import RunFolder
from runyard.spec.json import from_json
from runyard.spec.launch import TorchDistributed
from runyard.spec.resources import Resources

DEADLINE_S = 60.0

# A process that leaves its parent and session and ignores SIGTERM, as daemons do.
DAEMON = """
import os, signal, sys, time
def daemon():
    ready_read, ready_write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            os.write(ready_write, b'x')
            time.sleep(600)
        os._exit(0)
    os.wait()
    os.read(ready_read, 1)
"""


def wait_until(condition: Callable[[], Any], what: str = "", deadline_s: float = DEADLINE_S) -> Any:
    """Return the first true result of ``condition``; fail with ``what`` after the deadline."""
    deadline = time.monotonic() + deadline_s
    while time.monotonic() < deadline:
        result = condition()
        if result:
            return result
        time.sleep(0.005)
    raise AssertionError(f"not within {deadline_s:.0f} s: {what or condition}")


def make_order(root: Path, script: str, *arguments: str, run_id: str = "run_1", **fields: Any) -> WorkOrder:
    """An order for a Python script, given as text, in a new run folder."""
    folder = RunFolder(root / run_id)
    folder.work.mkdir(parents=True, exist_ok=True)
    (folder.work / "train.py").write_text(script, encoding="utf-8")
    variables = {
        "PATH": os.environ["PATH"],
        "PYTHONUNBUFFERED": "1",
        PROCESS_TAG: process_tag(run_id, folder),
        **fields.pop("variables", {}),
    }
    argv = (sys.executable, "-S", "train.py", *arguments)
    return WorkOrder(run_id, str(folder.root), argv, variables, **fields)


def make_gang_order(root: Path, nodes: tuple[Node, ...], script: str) -> WorkOrder:
    """An order for one torch process on each of the nodes."""
    return make_order(
        root,
        script,
        nodes=nodes,
        launch=TorchDistributed(),
        resources=Resources(nodes=len(nodes)),
        secret="shared by the agents of one run",
    )


def events_of(order: WorkOrder) -> list[dict[str, Any]]:
    path = RunFolder(Path(order.folder)).events
    return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


def end_of(order: WorkOrder) -> End:
    """Wait for the end that the agent records."""
    last = wait_until(
        lambda: [e for e in events_of(order) if e["event"] in ("script_ended", "launch_failed")],
        f"the end of {order.run_id}; events: {events_of(order)}",
    )
    return from_json(End, last[-1]["end"])


def log_of(order: WorkOrder) -> bytes:
    path = RunFolder(Path(order.folder)).driver_log()
    return path.read_bytes() if path.exists() else b""


def processes_of(order: WorkOrder) -> list[int]:
    """All living processes with the run's tag, found without the agent's code."""
    marker = f"{PROCESS_TAG}={order.variables[PROCESS_TAG]}".encode()
    pids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                is_dead = (entry / "stat").read_bytes().rpartition(b")")[2].split()[0] in (b"Z", b"X")
                if not is_dead and marker in (entry / "environ").read_bytes().split(b"\0"):
                    pids.append(int(entry.name))
            except OSError:
                continue
    return pids
