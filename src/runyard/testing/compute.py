"""What every compute target must do, proven with real processes.

    class TestMine(ComputeContract):
        @pytest.fixture
        def compute(self, tmp_path): ...

The target must see the files of the machine that the tests run on.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runyard.compute.base import Compute, Handle
from runyard.launch.order import Node, WorkOrder
from runyard.launch.variables import PROCESS_TAG, process_tag
from runyard.lifecycle.state import End, EndReason
from runyard.spec.folder import RunFolder
from runyard.spec.json import from_json
from runyard.spec.launch import TorchDistributed
from runyard.spec.resources import Resources

DEADLINE_S = 60.0

ODD_TEXTS = (
    "",
    " ",
    "a b",
    "'",
    '"',
    "`id`",
    "$(id)",
    "$UNKNOWN",
    "*",
    "\\",
    "a\nb",
    "\t",
    "é",
    "日本",
    "--",
    "\udcff",
)


def wait_until(condition: Callable[[], Any], what: str = "", deadline_s: float = DEADLINE_S) -> Any:
    """The first true answer; fails with ``what`` after the deadline."""
    give_up = time.monotonic() + deadline_s
    while time.monotonic() < give_up:
        found = condition()
        if found:
            return found
        time.sleep(0.005)
    raise AssertionError(f"not within {deadline_s:.0f} s: {what or condition}")


def make_order(root: Path, script: str, *arguments: str, run_id: str = "run_1", **fields: Any) -> WorkOrder:
    """An order for a Python script given as text, in a run folder of its own."""
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


def a_gang(root: Path, nodes: tuple[Node, ...], script: str) -> WorkOrder:
    """An order for one process of torch on each of the nodes."""
    return make_order(
        root,
        script,
        nodes=nodes,
        launch=TorchDistributed(),
        resources=Resources(nodes=len(nodes)),
        secret="known to the agents of one run",
    )


def events_of(order: WorkOrder) -> list[dict[str, Any]]:
    path = RunFolder(Path(order.folder)).events
    return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


def end_of(order: WorkOrder) -> End:
    """The end that the agent wrote, waited for."""
    last = wait_until(
        lambda: [e for e in events_of(order) if e["event"] in ("script_ended", "launch_failed")],
        f"the end of {order.run_id}; events: {events_of(order)}",
    )
    return from_json(End, last[-1]["end"])


def log_of(order: WorkOrder) -> bytes:
    path = RunFolder(Path(order.folder)).driver_log()
    return path.read_bytes() if path.exists() else b""


def processes_of(order: WorkOrder) -> list[int]:
    """Every living process that carries the run's tag: looked for here independently of the agent's own search."""
    marker = f"{PROCESS_TAG}={order.variables[PROCESS_TAG]}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                is_dead = (entry / "stat").read_bytes().rpartition(b")")[2].split()[0] in (b"Z", b"X")
                if not is_dead and marker in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


class ComputeContract:
    """A target with a scheduler of its own may let runs wait; one without nodes of its own plays them."""

    many = 200

    @pytest.fixture
    def compute(self, tmp_path: Path) -> Compute:
        raise NotImplementedError

    @pytest.fixture
    def nodes(self) -> tuple[Node, ...]:
        """Those that a run of two nodes is ordered for."""
        return (Node("node-0"), Node("node-1"))

    def test_a_script_runs_to_its_end(self, compute: Compute, tmp_path: Path) -> None:
        order = make_order(
            tmp_path, "import sys; print('out'); print('err', file=sys.stderr); print(sys.argv[1:])", "--x"
        )
        handle = compute.start(order)
        assert end_of(order) == End(EndReason.SUCCEEDED, exit_code=0, processes_left=0)
        assert log_of(order) == b"out\nerr\n['--x']\n"
        assert [e["event"] for e in events_of(order)] == ["script_started", "script_ended"]
        wait_until(lambda: compute.status([handle]) == {}, "the agent to go")

    def test_render_is_text_with_the_command_and_starts_nothing(self, compute: Compute, tmp_path: Path) -> None:
        order = make_order(tmp_path, "print('never')", "--name", "a b")
        text = compute.render(order)
        assert "train.py" in text
        assert "'a b'" in text
        assert compute.render(order) == text
        assert events_of(order) == []

    def test_a_failing_script_ends_with_its_own_error(self, compute: Compute, tmp_path: Path) -> None:
        order = make_order(tmp_path, "raise ValueError('bad lr')")
        compute.start(order)
        end = end_of(order)
        assert (end.reason, end.message, end.exit_code) == (EndReason.SCRIPT_FAILED, "ValueError: bad lr", 1)
        assert end.traceback.startswith("Traceback (most recent call last):")
        assert end.processes_left == 0

    def test_a_missing_interpreter_is_a_failed_launch_with_its_reason(self, compute: Compute, tmp_path: Path) -> None:
        order = make_order(tmp_path, "")
        order = WorkOrder(order.run_id, order.folder, ("/nowhere/python", "train.py"), order.variables)
        compute.start(order)
        end = end_of(order)
        assert end.reason is EndReason.LAUNCH_FAILED
        assert "/nowhere/python" in end.message
        assert "No such file" in end.message

    def test_cancel_stops_the_script(self, compute: Compute, tmp_path: Path) -> None:
        order = make_order(tmp_path, "print('up')\nimport time\ntime.sleep(600)")
        handle = compute.start(order)
        wait_until(lambda: log_of(order), "the first line")
        compute.stop(handle, "canceled")
        compute.stop(handle, "canceled")
        end = end_of(order)
        assert (end.reason, end.signal, end.processes_left) == (EndReason.CANCELED, "SIGTERM", 0)
        assert processes_of(order) == []
        wait_until(lambda: compute.status([handle]) == {}, "the agent to go")
        compute.stop(handle, "canceled")
        assert end_of(order) == end

    def test_a_script_that_ignores_the_polite_signal_is_killed_after_the_grace(
        self, compute: Compute, tmp_path: Path
    ) -> None:
        script = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up')\ntime.sleep(600)"
        order = make_order(tmp_path, script, grace_s=0.3)
        handle = compute.start(order)
        wait_until(lambda: log_of(order), "the first line")
        compute.stop(handle)
        end = end_of(order)
        assert (end.reason, end.signal, end.processes_left) == (EndReason.CANCELED, "SIGKILL", 0)

    def test_a_run_is_ended_after_its_time(self, compute: Compute, tmp_path: Path) -> None:
        order = make_order(tmp_path, "import time; time.sleep(600)", max_run_duration_seconds=1)
        compute.start(order)
        end = end_of(order)
        assert end.reason is EndReason.TIMED_OUT
        assert "max_run_duration_seconds=1" in end.message
        assert processes_of(order) == []

    def test_starting_twice_runs_the_script_once(self, compute: Compute, tmp_path: Path) -> None:
        gate = tmp_path / "gate"
        script = f"print('once')\nimport os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)"
        order = make_order(tmp_path, script)
        assert compute.start(order) == compute.start(order)
        gate.touch()
        end_of(order)
        compute.start(order)
        assert log_of(order) == b"once\n"
        assert len(events_of(order)) == 2

    def test_status_is_asked_for_many_and_leaves_out_those_that_are_gone(
        self, compute: Compute, tmp_path: Path
    ) -> None:
        script = "print('up')\nimport time\ntime.sleep(600)"
        orders = [make_order(tmp_path, script, run_id=f"run_{n}") for n in range(3)]
        handles = [compute.start(order) for order in orders]
        wait_until(lambda: all(log_of(order) for order in orders), "the first line of each")
        never = Handle("run_never", str(tmp_path / "run_never"))
        assert set(compute.status([*handles, never])) == set(handles)
        compute.stop(handles[0])
        wait_until(lambda: set(compute.status(handles)) == set(handles[1:]), "the first to go")
        for handle in handles:
            compute.stop(handle)
        for order in orders:
            end_of(order)

    def test_a_handle_made_anew_adopts_a_running_run(self, compute: Compute, tmp_path: Path) -> None:
        order = make_order(tmp_path, "print('up')\nimport time\ntime.sleep(600)")
        handle = compute.start(order)
        wait_until(lambda: log_of(order), "the first line")
        again = Handle(handle.run_id, handle.folder, handle.reference)
        assert again in compute.status([again])
        compute.stop(again)
        assert end_of(order).reason is EndReason.CANCELED

    def test_no_orphans_stay_after_a_normal_end(self, compute: Compute, tmp_path: Path) -> None:
        order = make_order(tmp_path, DAEMON + "daemon(); daemon(); print('done')")
        compute.start(order)
        end = end_of(order)
        assert (end.reason, end.processes_left) == (EndReason.SUCCEEDED, 0)
        assert processes_of(order) == []

    def test_sweep_stops_what_a_killed_agent_left(self, compute: Compute, tmp_path: Path) -> None:
        order = make_order(tmp_path, DAEMON + "daemon(); print('up', flush=True); time.sleep(600)")
        handle = compute.start(order)
        wait_until(lambda: log_of(order), "the first line")
        agent = compute.status([handle])[handle].pid
        assert agent is not None
        os.kill(agent, signal.SIGKILL)
        wait_until(lambda: compute.status([handle]) == {}, "the agent to go")
        assert compute.stop_leftovers(handle) == 0
        assert processes_of(order) == []
        assert compute.stop_leftovers(handle) == 0

    def test_odd_characters_arrive_as_they_are(self, compute: Compute, tmp_path: Path) -> None:
        script = (
            "import json, os, sys\n"
            "print(json.dumps([sys.argv[1:], [os.environb[b'ODD_%d' % n].hex() for n in range(int(sys.argv[1]))]]))"
        )
        variables = {f"ODD_{n}": text for n, text in enumerate(ODD_TEXTS)}
        variables["PYTHONUTF8"] = "1"
        order = make_order(tmp_path, script, str(len(ODD_TEXTS)), *ODD_TEXTS, variables=variables)
        compute.start(order)
        end_of(order)
        arguments, values = json.loads(log_of(order))
        assert arguments == [str(len(ODD_TEXTS)), *ODD_TEXTS]
        assert values == [text.encode("utf-8", "surrogateescape").hex() for text in ODD_TEXTS]

    def test_variables_in_arguments_are_expanded_where_the_script_runs(self, compute: Compute, tmp_path: Path) -> None:
        order = make_order(
            tmp_path, "import sys; print(sys.argv[1:])", "$DATA/x", "${DATA}", "$NO", variables={"DATA": "/d $PATH"}
        )
        compute.start(order)
        end_of(order)
        assert log_of(order) == b"['/d $PATH/x', '/d $PATH', '$NO']\n"

    def test_processes_on_several_nodes_meet_and_end_together(
        self, compute: Compute, nodes: tuple[Node, ...], tmp_path: Path
    ) -> None:
        order = a_gang(tmp_path, nodes, MEET + "print('rank', os.environ['RANK'], 'of', size)")
        handle = compute.start(order)
        end = end_of(order)
        assert (end.reason, end.processes_left) == (EndReason.SUCCEEDED, 0), end
        assert compute.collect(handle, ()) == ()  # each node brings what it has in its own time
        logs = RunFolder(Path(order.folder)).logs
        said = sorted((logs / f"70_driver_log_rank_{rank}.txt").read_text() for rank in range(2))
        assert said == ["rank 0 of 2\n", "rank 1 of 2\n"]

    def test_a_failure_on_one_node_ends_all_and_is_named(
        self, compute: Compute, nodes: tuple[Node, ...], tmp_path: Path
    ) -> None:
        script = "import time\nif os.environ['RANK'] == '1':\n    raise ValueError('bad shard')\ntime.sleep(600)"
        order = a_gang(tmp_path, nodes, MEET + script)
        compute.start(order)
        end = end_of(order)
        assert (end.reason, end.rank, end.processes_left) == (EndReason.SCRIPT_FAILED, 1, 0)
        assert "ValueError: bad shard" in end.message
        assert processes_of(order) == []

    def test_cancel_stops_the_processes_of_all_nodes(
        self, compute: Compute, nodes: tuple[Node, ...], tmp_path: Path
    ) -> None:
        order = a_gang(tmp_path, nodes, MEET + "print('up', flush=True)\nimport time\ntime.sleep(600)")
        handle = compute.start(order)
        logs = [RunFolder(Path(order.folder)).logs / f"70_driver_log_rank_{rank}.txt" for rank in range(2)]
        wait_until(lambda: all(log.exists() and log.read_bytes() for log in logs), "the first line of both")
        compute.stop(handle)
        end = end_of(order)
        assert (end.reason, end.processes_left) == (EndReason.CANCELED, 0)
        assert processes_of(order) == []

    def test_many_runs_wait_for_their_turn_and_all_come_to_their_end(self, compute: Compute, tmp_path: Path) -> None:
        orders = [make_order(tmp_path, f"print({n})", run_id=f"run_{n}") for n in range(self.many)]
        handles = [compute.start(order) for order in orders]
        wait_until(lambda: compute.status(handles) == {}, "all to go", 4 * DEADLINE_S)
        assert [end_of(order).reason for order in orders] == [EndReason.SUCCEEDED] * self.many
        assert [log_of(order) for order in orders] == [f"{n}\n".encode() for n in range(self.many)]


# Two processes that find each other, by the variables of torch.
MEET = """
import os, socket, time
place, size = (os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT'])), int(os.environ['WORLD_SIZE'])
if os.environ['RANK'] == '0':
    with socket.create_server(('', place[1])) as server:
        server.accept()[0].close()
else:
    while True:
        try:
            socket.create_connection(place).close()
            break
        except ConnectionRefusedError:
            time.sleep(0.01)
"""

# A process that leaves its parent, its session and its signals behind, as daemons do.
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
