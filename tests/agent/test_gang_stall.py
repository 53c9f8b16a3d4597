"""Runs that make no progress."""

import subprocess
import sys

import pytest
from uv import find_uv_bin

from gang_support import make_gang, running
from runyard.agent.diagnosis.stacks import summarize
from runyard.compute.local.compute import LocalCompute
from runyard.lifecycle.state import EndReason
from runyard.spec.launch import TorchDistributed
from runyard.testing.work_orders import end_of, make_order, wait_until

WAITING = """
import os, socket
def all_reduce():
    ours, theirs = socket.socketpair()
    ours.recv(1)
print('up', flush=True)
all_reduce()
"""


def stall_events(gang):
    return [event["ranks"] for event in gang.events() if event["event"] == "stalled"]


def test_ranks_that_wait_for_each_other_are_reported_and_the_run_continues(tmp_path):
    gang = make_gang(tmp_path, WAITING, TorchDistributed(), stall_after_s=1.0, processes_per_node=2)
    with running(gang):
        [ranks] = wait_until(lambda: stall_events(gang), "the stall to be reported")
        assert sorted(ranks) == ["0", "1", "2", "3"]
        files = sorted(path.name for path in (gang.folder.work / "logs/stalled").iterdir())
        assert files == [f"rank_{rank}.txt" for rank in range(4)]
        assert all(agent.poll() is None for agent in gang.agents)
        gang.agents[0].terminate()
        assert gang.end().reason is EndReason.CANCELED
    assert len(stall_events(gang)) == 1


def test_a_stalled_run_can_be_stopped(tmp_path):
    gang = make_gang(tmp_path, WAITING, TorchDistributed(), stall_after_s=1.0, stall_action="stop")
    with running(gang):
        end = gang.end()
    assert (end.reason, end.processes_left, gang.remaining_pids()) == (EndReason.STALLED, 0, [])
    assert end.message.startswith("no progress for 1.0 s: rank 0 ")


def test_log_lines_and_cpu_time_are_progress(tmp_path):
    script = (
        "import os, time\nend = time.monotonic() + 3\n"
        "if os.environ['RANK'] == '0':\n    while time.monotonic() < end: pass\n"
        "else:\n    while time.monotonic() < end: print('tick', flush=True); time.sleep(0.3)"
    )
    gang = make_gang(tmp_path, script, TorchDistributed(), stall_after_s=1.0, stall_action="stop")
    with running(gang):
        assert gang.end().reason is EndReason.SUCCEEDED
    assert stall_events(gang) == []


def test_a_stalled_single_process(tmp_path):
    order = make_order(tmp_path, WAITING, stall_after_s=1.0, stall_action="stop")
    compute = LocalCompute(tmp_path)
    try:
        compute.start(order)
        end = end_of(order)
    finally:
        compute.close()
    assert (end.reason, end.processes_left) == (EndReason.STALLED, 0)
    assert (tmp_path / "run_1/work/logs/stalled/rank_0.txt").exists()


@pytest.mark.real
def test_ranks_that_wait_with_full_cpu_usage_are_reported_with_their_position(tmp_path):
    script = "print('up', flush=True)\ndef barrier():\n    while True: pass\n\ndef main():\n    barrier()\nmain()"
    tool = tmp_path / "tool"
    subprocess.run([find_uv_bin(), "venv", "-q", str(tool)], check=True)
    subprocess.run([find_uv_bin(), "pip", "install", "-q", "--python", str(tool / "bin/python"), "py-spy"], check=True)
    gang = make_gang(
        tmp_path, script, TorchDistributed(), stall_after_s=3.0, stall_action="stop", py_spy=str(tool / "bin/py-spy")
    )
    with running(gang):
        end = gang.end()
    assert end.reason is EndReason.STALLED
    assert "train.py:3" in end.message
    assert "barrier" in (gang.folder.work / "logs/stalled/rank_0.txt").read_text()


def test_the_summary_is_the_innermost_call_in_user_code(tmp_path):
    (tmp_path / "train.py").write_text("import torch\n\ndist.all_reduce(t)\n")
    text = (
        f'Process 7: {sys.executable}\n\nThread 7 (idle): "MainThread"\n'
        "    all_reduce (torch/distributed/distributed_c10d.py:2910)\n"
        "    _exception_logger.<locals>.wrapper (torch/distributed/c10d_logger.py:81)\n"
        "    <module> (train.py:3)\n"
        'Thread 8 (idle): "other"\n    wait (threading.py:3)\n'
    )
    assert summarize(text, tmp_path) == "in all_reduce (train.py:3)"
    direct = 'Thread 7 (idle): "MainThread"\n    <module> (train.py:3)\n'
    assert summarize(direct, tmp_path) == "at `dist.all_reduce(t)` (train.py:3)"
    assert summarize("S (sleeping), in the kernel: futex\n", tmp_path) == "S (sleeping), in the kernel: futex"
