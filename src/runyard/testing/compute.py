"""The contract tests of compute targets, with real processes.

    class TestMine(ComputeContract):
        @pytest.fixture
        def compute(self, tmp_path): ...

The nodes of the target must see the files of the machine that the tests run on.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from runyard.compute.base import Compute, DataUpload, EnvironmentRequest, Handle
from runyard.data.cache import Leaf, key_of
from runyard.launch.order import Node, WorkOrder
from runyard.lifecycle.state import End, EndReason
from runyard.posix import sha256
from runyard.spec.environment import EnvironmentSpec
from runyard.spec.folder import RunFolder
from runyard.spec.json import to_json
from runyard.spec.resources import Resources
from runyard.testing.work_orders import (
    DAEMON,
    DEADLINE_S,
    end_of,
    events_of,
    log_of,
    make_gang_order,
    make_order,
    processes_of,
    wait_until,
)

SPECIAL_TEXTS = (
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


class ComputeContract:
    """Inherit from this class and define the fixture ``compute``.

    A test about an ability that the target does not declare checks the default behavior instead.
    """

    many = 200  # runs in the test of many runs

    @pytest.fixture
    def compute(self, tmp_path: Path) -> Compute:
        raise NotImplementedError

    @pytest.fixture
    def nodes(self) -> tuple[Node, ...]:
        """The nodes for a run on two nodes."""
        return (Node("node-0"), Node("node-1"))

    def test_a_script_runs_to_its_end(self, compute: Compute, tmp_path: Path) -> None:
        order = make_order(
            tmp_path, "import sys; print('out'); print('err', file=sys.stderr); print(sys.argv[1:])", "--x"
        )
        handle = compute.start(order)
        assert end_of(order) == End(EndReason.SUCCEEDED, exit_code=0, processes_left=0)
        assert log_of(order) == b"out\nerr\n['--x']\n"
        assert [e["event"] for e in events_of(order)] == ["script_started", "script_ended"]
        wait_until(lambda: compute.status([handle]) == {}, "the agent to exit")

    def test_render_returns_the_command_and_starts_nothing(self, compute: Compute, tmp_path: Path) -> None:
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

    def test_a_missing_interpreter_is_a_failed_launch_with_a_reason(self, compute: Compute, tmp_path: Path) -> None:
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
        wait_until(lambda: compute.status([handle]) == {}, "the agent to exit")
        compute.stop(handle, "canceled")
        assert end_of(order) == end

    def test_a_script_that_ignores_sigterm_is_killed_after_the_grace_period(
        self, compute: Compute, tmp_path: Path
    ) -> None:
        script = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up')\ntime.sleep(600)"
        order = make_order(tmp_path, script, grace_s=0.3)
        handle = compute.start(order)
        wait_until(lambda: log_of(order), "the first line")
        compute.stop(handle)
        end = end_of(order)
        assert (end.reason, end.signal, end.processes_left) == (EndReason.CANCELED, "SIGKILL", 0)

    def test_a_run_is_stopped_at_its_time_limit(self, compute: Compute, tmp_path: Path) -> None:
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

    def test_status_of_many_runs_omits_those_without_an_agent(self, compute: Compute, tmp_path: Path) -> None:
        script = "print('up')\nimport time\ntime.sleep(600)"
        orders = [make_order(tmp_path, script, run_id=f"run_{n}") for n in range(3)]
        handles = [compute.start(order) for order in orders]
        wait_until(lambda: all(log_of(order) for order in orders), "the first line of each")
        never = Handle("run_never", str(tmp_path / "run_never"))
        assert set(compute.status([*handles, never])) == set(handles)
        compute.stop(handles[0])
        wait_until(lambda: set(compute.status(handles)) == set(handles[1:]), "the first to exit")
        for handle in handles:
            compute.stop(handle)
        for order in orders:
            end_of(order)

    def test_a_rebuilt_handle_identifies_a_running_run(self, compute: Compute, tmp_path: Path) -> None:
        order = make_order(tmp_path, "print('up')\nimport time\ntime.sleep(600)")
        handle = compute.start(order)
        wait_until(lambda: log_of(order), "the first line")
        again = Handle(handle.run_id, handle.folder, handle.reference)
        assert again in compute.status([again])
        compute.stop(again)
        assert end_of(order).reason is EndReason.CANCELED

    def test_no_processes_remain_after_a_normal_end(self, compute: Compute, tmp_path: Path) -> None:
        order = make_order(tmp_path, DAEMON + "daemon(); daemon(); print('done')")
        compute.start(order)
        end = end_of(order)
        assert (end.reason, end.processes_left) == (EndReason.SUCCEEDED, 0)
        assert processes_of(order) == []

    def test_processes_of_a_killed_agent_are_stopped(self, compute: Compute, tmp_path: Path) -> None:
        order = make_order(tmp_path, DAEMON + "daemon(); print('up', flush=True); time.sleep(600)")
        handle = compute.start(order)
        wait_until(lambda: log_of(order), "the first line")
        agent = compute.status([handle])[handle].pid
        assert agent is not None
        os.kill(agent, signal.SIGKILL)
        wait_until(lambda: compute.status([handle]) == {}, "the agent to exit")
        assert compute.stop_leftovers(handle) == 0
        assert processes_of(order) == []
        assert compute.stop_leftovers(handle) == 0

    def test_special_characters_arrive_unchanged(self, compute: Compute, tmp_path: Path) -> None:
        script = (
            "import json, os, sys\n"
            "print(json.dumps([sys.argv[1:], [os.environb[b'SPECIAL_%d' % n].hex() for n in range(int(sys.argv[1]))]]))"
        )
        variables = {f"SPECIAL_{n}": text for n, text in enumerate(SPECIAL_TEXTS)}
        variables["PYTHONUTF8"] = "1"
        order = make_order(tmp_path, script, str(len(SPECIAL_TEXTS)), *SPECIAL_TEXTS, variables=variables)
        compute.start(order)
        end_of(order)
        arguments, values = json.loads(log_of(order))
        assert arguments == [str(len(SPECIAL_TEXTS)), *SPECIAL_TEXTS]
        assert values == [text.encode("utf-8", "surrogateescape").hex() for text in SPECIAL_TEXTS]

    def test_variables_in_arguments_are_expanded_where_the_script_runs(self, compute: Compute, tmp_path: Path) -> None:
        order = make_order(
            tmp_path, "import sys; print(sys.argv[1:])", "$DATA/x", "${DATA}", "$NO", variables={"DATA": "/d $PATH"}
        )
        compute.start(order)
        end_of(order)
        assert log_of(order) == b"['/d $PATH/x', '/d $PATH', '$NO']\n"

    def test_processes_on_several_nodes_connect_and_end_together(
        self, compute: Compute, nodes: tuple[Node, ...], tmp_path: Path
    ) -> None:
        order = make_gang_order(tmp_path, nodes, CONNECT + "print('rank', os.environ['RANK'], 'of', size)")
        handle = compute.start(order)
        end = end_of(order)
        assert (end.reason, end.processes_left) == (EndReason.SUCCEEDED, 0), end
        assert compute.collect(handle, ()) == ()  # each node sends its files at its own pace
        logs = RunFolder(Path(order.folder)).logs
        outputs = sorted((logs / f"70_driver_log_rank_{rank}.txt").read_text() for rank in range(2))
        assert outputs == ["rank 0 of 2\n", "rank 1 of 2\n"]

    def test_a_failure_on_one_node_ends_all_and_is_reported(
        self, compute: Compute, nodes: tuple[Node, ...], tmp_path: Path
    ) -> None:
        script = "import time\nif os.environ['RANK'] == '1':\n    raise ValueError('bad shard')\ntime.sleep(600)"
        order = make_gang_order(tmp_path, nodes, CONNECT + script)
        compute.start(order)
        end = end_of(order)
        assert (end.reason, end.rank, end.processes_left) == (EndReason.SCRIPT_FAILED, 1, 0)
        assert "ValueError: bad shard" in end.message
        assert processes_of(order) == []

    def test_cancel_stops_the_processes_of_all_nodes(
        self, compute: Compute, nodes: tuple[Node, ...], tmp_path: Path
    ) -> None:
        order = make_gang_order(tmp_path, nodes, CONNECT + "print('up', flush=True)\nimport time\ntime.sleep(600)")
        handle = compute.start(order)
        logs = [RunFolder(Path(order.folder)).logs / f"70_driver_log_rank_{rank}.txt" for rank in range(2)]
        wait_until(lambda: all(log.exists() and log.read_bytes() for log in logs), "the first line of both")
        compute.stop(handle)
        end = end_of(order)
        assert (end.reason, end.processes_left) == (EndReason.CANCELED, 0)
        assert processes_of(order) == []

    def test_many_runs_complete(self, compute: Compute, tmp_path: Path) -> None:
        orders = [make_order(tmp_path, f"print({n})", run_id=f"run_{n}") for n in range(self.many)]
        handles = [compute.start(order) for order in orders]
        wait_until(lambda: compute.status(handles) == {}, "all to exit", 4 * DEADLINE_S)
        assert [end_of(order).reason for order in orders] == [EndReason.SUCCEEDED] * self.many
        assert [log_of(order) for order in orders] == [f"{n}\n".encode() for n in range(self.many)]

    def test_known_digests_of_the_working_copy_are_accepted(self, compute: Compute, tmp_path: Path) -> None:
        order = make_order(tmp_path, "print('ran')")
        digest = sha256.of_file(RunFolder(Path(order.folder)).work / "train.py")
        compute.start(order, {"train.py": digest})
        assert end_of(order).reason is EndReason.SUCCEEDED
        assert log_of(order) == b"ran\n"

    def test_environments_are_usable(self, compute: Compute, tmp_path: Path) -> None:
        """Remote environments are prepared on the nodes; without them, nodes see the environments of the yard."""
        python = sys.executable
        if compute.remote_environments is not None:
            spec = to_json(EnvironmentSpec(user_managed=True))
            request = EnvironmentRequest(spec, "run_1", substitute_python=True)
            environments = compute.remote_environments.prepare(request, [0], report=ignore, canceled=Event())
            python = environments[0].prepared["python"]
        order = make_order(tmp_path, "print('ran')")
        compute.start(replace(order, argv=(python, "-S", "train.py")))
        assert end_of(order).reason is EndReason.SUCCEEDED

    def test_data_is_readable(self, compute: Compute, tmp_path: Path) -> None:
        """Remote data is copied to the nodes; without it, nodes see the files of the yard."""
        source = tmp_path / "data" / "numbers.txt"
        source.parent.mkdir()
        source.write_text("1 2 3")
        script = "import os, sys; print(open(os.path.join(sys.argv[1], 'numbers.txt')).read())"
        order = make_order(tmp_path, script, "$DATA")
        folder = str(source.parent)
        if compute.remote_data is not None:
            leaves = (Leaf(source.name, sha256.of_file(source), source.stat().st_size),)
            upload = DataUpload("numbers", key_of(leaves), leaves, {leaves[0].digest: source})
            folder = compute.remote_data.upload(
                order.run_id, order.folder, upload, [0], report=ignore, canceled=Event()
            )
        compute.start(replace(order, variables={**order.variables, "DATA": folder}))
        assert end_of(order).reason is EndReason.SUCCEEDED
        assert log_of(order) == b"1 2 3\n"

    def test_private_variables_reach_the_process_and_no_file(self, compute: Compute, tmp_path: Path) -> None:
        secret = "opensesame-q7Zr"
        script = "import os, sys; print(os.environ['TOKEN'][::-1], sys.argv[1][::-1])"
        order = make_order(tmp_path / "home" / "runs", script, "--token=$TOKEN")
        compute.start(replace(order, private={"TOKEN": secret}, secret_variables=("TOKEN",)))
        assert end_of(order).reason is EndReason.SUCCEEDED
        assert log_of(order).decode() == f"{secret[::-1]} {secret[::-1]}=nekot--\n"
        files = [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_symlink()]
        assert [path for path in files if secret.encode() in path.read_bytes()] == []

    def test_waiting_runs_have_a_reason(self, compute: Compute, tmp_path: Path) -> None:
        """Only a target with its own scheduler may report that a run waits."""
        order = make_order(tmp_path, "print('ran')")
        handle = compute.start(order)
        agent = compute.status([handle]).get(handle)
        if compute.scheduler is None:
            assert agent is None or agent.waiting_reason is None
        else:
            assert compute.scheduler.fit(Resources())[0] == Resources()
            assert compute.scheduler.job_script(order) == compute.scheduler.job_script(order) != ""
            assert compute.scheduler.waiting_reason("run_unknown") == ""
            json.dumps(compute.scheduler.describe())
        assert end_of(order).reason is EndReason.SUCCEEDED

    def test_an_ended_run_can_be_discarded_twice(self, compute: Compute, tmp_path: Path) -> None:
        order = make_order(tmp_path, "print('ran')")
        handle = compute.start(order)
        end_of(order)
        wait_until(lambda: compute.status([handle]) == {}, "the agent to exit")
        assert compute.collect(handle, ["outputs"]) == ()
        for _ in range(2):
            compute.discard(handle)
        assert log_of(order) == b"ran\n"

    def test_a_node_has_a_capacity_and_variables(self, compute: Compute) -> None:
        assert compute.capacity().cpus >= 1
        assert "PATH" in compute.inherited_variables()


def ignore(text: str) -> None:
    """A progress callback."""


# Two processes that connect through the variables of torch.
CONNECT = """
import os, socket, time
address, size = (os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT'])), int(os.environ['WORLD_SIZE'])
if os.environ['RANK'] == '0':
    with socket.create_server(('', address[1])) as server:
        server.accept()[0].close()
else:
    while True:
        try:
            socket.create_connection(address).close()
            break
        except ConnectionRefusedError:
            time.sleep(0.01)
"""
