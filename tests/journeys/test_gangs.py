"""Gangs through the public names: variables, logs, metrics, verdicts, dry runs. The scripts need no framework."""

from __future__ import annotations

import itertools
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from gang_support import killed_at_start
from runyard import (
    AmlCompute,
    ComputeTarget,
    Experiment,
    PyTorchConfiguration,
    Run,
    ScriptRunConfig,
    TensorflowConfiguration,
    Workspace,
)
from runyard.errors import ActivityFailedException
from support import eventually, is_alive

_names = (f"gang-{number}" for number in itertools.count())

REPORT = """
import json, os
from runyard import Run
run = Run.get_context()
rank = int(os.environ['RUNYARD_RANK'])
names = ('RANK', 'LOCAL_RANK', 'NODE_RANK', 'WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT', 'AZ_BATCHAI_TASK_INDEX',
          'AZ_BATCHAI_PYTORCH_INIT_METHOD', 'TF_CONFIG', 'AZ_BATCHAI_WORKER_HOSTS', 'AZ_BATCHAI_PS_HOSTS')
print(json.dumps({name: os.environ[name] for name in names if name in os.environ}))
for step in range(20):
    run.log('from %d' % rank, step)
    run.log('together', rank)
"""


@pytest.fixture
def cluster(workspace: Workspace) -> Iterator[AmlCompute]:
    target = ComputeTarget.create(workspace, next(_names), AmlCompute.provisioning_configuration(max_nodes=4))
    yield target
    target.delete()


def test_a_cluster_can_be_deleted_as_soon_as_its_last_run_has_ended(workspace: Workspace, experiment, project) -> None:
    config = ScriptRunConfig(project(train="pass"), script="train.py")
    config.run_config.environment.python.user_managed_dependencies = True
    for _ in range(10):
        target = ComputeTarget.create(workspace, next(_names), AmlCompute.provisioning_configuration(max_nodes=1))
        config.run_config.target = target.name
        experiment.submit(config).wait_for_completion()
        target.delete()
        assert target.name not in workspace.compute_targets


def gang(folder: Path, cluster: AmlCompute, job: object) -> ScriptRunConfig:
    config = ScriptRunConfig(folder, script="train.py", compute_target=cluster, distributed_job_config=job)
    config.run_config.environment.python.user_managed_dependencies = True
    return config


def first_line_of(run: Run, name: str) -> dict[str, str]:
    text = (run.folder / "azureml-logs" / f"70_driver_log_{name}.txt").read_text()
    variables: dict[str, str] = json.loads(text.splitlines()[0])
    return variables


def test_torch_processes_get_the_variables_of_env_and_one_log_each(
    experiment: Experiment, cluster: AmlCompute, project
) -> None:
    """B7.43, B7.46, B7.47: each rank has its variables and its log, and all log to one run."""
    job = PyTorchConfiguration("Gloo", process_count=4, node_count=2)
    run = experiment.submit(gang(project(train=REPORT), cluster, job))
    assert run.wait_for_completion()["status"] == "Completed"
    by_rank = [first_line_of(run, f"rank_{rank}") for rank in range(4)]
    assert [(e["RANK"], e["LOCAL_RANK"], e["NODE_RANK"]) for e in by_rank] == [
        ("0", "0", "0"),
        ("1", "1", "0"),
        ("2", "0", "1"),
        ("3", "1", "1"),
    ]
    assert {e["WORLD_SIZE"] for e in by_rank} == {"4"}
    assert len({(e["MASTER_ADDR"], e["MASTER_PORT"]) for e in by_rank}) == 1
    assert (
        by_rank[2]["AZ_BATCHAI_PYTORCH_INIT_METHOD"] == f"tcp://{by_rank[0]['MASTER_ADDR']}:{by_rank[0]['MASTER_PORT']}"
    )
    metrics = run.get_metrics()
    for rank in range(4):
        assert metrics[f"from {rank}"] == list(range(20))
    assert sorted(metrics["together"]) == sorted([0, 1, 2, 3] * 20)


def test_parameter_servers_get_tf_config_and_the_run_ends_with_its_workers(
    experiment: Experiment, cluster: AmlCompute, project
) -> None:
    """B7.44, B7.45."""
    script = (
        REPORT
        + "if json.loads(os.environ['TF_CONFIG'])['task']['type'] == 'ps':\n    import signal\n    signal.pause()\n"
    )
    config = gang(project(train=script), cluster, TensorflowConfiguration(2, 1))
    config.run_config.node_count = 2
    run = experiment.submit(config)
    details = run.wait_for_completion()
    assert details["status"] == "Completed"
    assert run.end.processes_left == 0
    worker = json.loads(first_line_of(run, "worker_1")["TF_CONFIG"])
    assert worker["task"] == {"type": "worker", "index": 1}
    assert worker["environment"] == "cloud"
    assert set(worker["cluster"]) == {"ps", "worker"}
    everyone = worker["cluster"]["ps"] + worker["cluster"]["worker"]
    assert len(set(everyone)) == 3
    assert first_line_of(run, "worker_0")["AZ_BATCHAI_WORKER_HOSTS"] == ",".join(worker["cluster"]["worker"])


def test_a_failed_rank_is_reported_with_its_error(experiment: Experiment, cluster: AmlCompute, project) -> None:
    script = """
import os, time
if os.environ['RANK'] == '2':
    raise ValueError('bad shard')
time.sleep(600)
"""
    run = experiment.submit(gang(project(train=script), cluster, PyTorchConfiguration("Gloo", 4, 2)))
    with pytest.raises(ActivityFailedException, match="ValueError: bad shard") as caught:
        run.wait_for_completion()
    error = caught.value.error_details["error"]
    assert "rank 2" in error["message"]
    assert error["details"]["rank"] == 2
    assert error["details"]["node"] == "node-1"
    assert error["details"]["processes_left"] == 0
    assert error["traceback"].rstrip().endswith("ValueError: bad shard")


@pytest.mark.parametrize("victim", ["rank", "agent", "lead", "yard"])
@pytest.mark.real
def test_kill_9_of_any_process_leaves_no_process(
    home: Path, experiment: Experiment, cluster: AmlCompute, project, victim: str
) -> None:
    script = "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)"
    run = experiment.submit(gang(project(train=script), cluster, PyTorchConfiguration("Gloo", 4, 2)))
    logs = home / "runs" / run.id / "azureml-logs"
    eventually(lambda: len([p for p in logs.glob("70_*") if p.stat().st_size]) == 4, "all ranks run")
    ranks = [int(path.read_text()) for path in sorted(logs.glob("70_*"))]
    root = home / "runs" / run.id
    pids = {
        "rank": ranks[1],
        "agent": int((root / "nodes" / "1" / "agent.lock").read_text()),
        "lead": int((root / "agent.lock").read_text()),
        "yard": int((home / "yard.lock").read_text()),
    }
    os.kill(pids[victim], signal.SIGKILL)
    if victim == "yard":
        run.cancel()
    details = run.wait_for_completion(raise_on_error=False)
    assert details["status"] == ("Canceled" if victim == "yard" else "Failed")
    assert details["error"]["error"]["details"]["processes_left"] == 0
    assert [pid for pid in ranks if is_alive(pid)] == []


@pytest.mark.parametrize(("lock", "reason"), [("nodes/1/agent.lock", "node lost"), ("agent.lock", "agent lost")])
@pytest.mark.real
def test_a_gang_whose_agent_is_killed_at_its_start_is_retried(
    home: Path, experiment: Experiment, cluster: AmlCompute, project, lock: str, reason: str
) -> None:
    """Whether or not the agents have connected by then."""
    script = "import os, time\nif os.environ['RUNYARD_ATTEMPT'] == '1': time.sleep(600)\n"
    config = gang(project(train=script), cluster, PyTorchConfiguration("Gloo", 2, 2))
    config.max_attempts = 2
    with killed_at_start(home, lock):
        run = experiment.submit(config)
        eventually(lambda: run.get_status() == "Completed", "the second attempt completes")
    assert [attempt.reason for attempt in run.attempts] == [reason]


def test_cancel_stops_all_ranks_of_a_gang(home: Path, experiment: Experiment, cluster: AmlCompute, project) -> None:
    script = "import time\nprint('on', flush=True)\ntime.sleep(600)"
    run = experiment.submit(gang(project(train=script), cluster, PyTorchConfiguration("Gloo", 4, 2)))
    eventually(lambda: run.get_status() == "Running", "the gang runs")
    run.cancel()
    details = run.wait_for_completion()
    assert details["status"] == "Canceled"
    assert details["error"]["error"]["details"]["processes_left"] == 0


def test_a_dry_run_shows_every_rank_and_starts_nothing(experiment: Experiment, cluster: AmlCompute, project) -> None:
    config = gang(project(train="print(1)"), cluster, PyTorchConfiguration("Gloo", 4, 2))
    text = experiment.submit(config, dry_run=True)
    for word in ("node-0", "node-1", "RANK=3", "WORLD_SIZE=4", "train.py"):
        assert word in text
    assert list(experiment.get_runs()) == []


def test_variables_in_arguments_are_expanded_for_each_rank(
    experiment: Experiment, cluster: AmlCompute, project
) -> None:
    """B6.33."""
    config = gang(project(train="import sys\nprint(sys.argv[1:])"), cluster, PyTorchConfiguration("Gloo", 2, 2))
    config.arguments = ["--rank", "$AZ_BATCHAI_TASK_INDEX"]
    run = experiment.submit(config)
    run.wait_for_completion()
    logs = run.get_details_with_logs()["logFiles"]
    assert "['--rank', '1']" in logs["azureml-logs/70_driver_log_rank_1.txt"]


@pytest.mark.real
def test_a_stalled_gang_reports_the_position_of_each_rank(experiment: Experiment, cluster: AmlCompute, project) -> None:
    script = """
import socket
def wait_for_the_other():
    listening = socket.socket()
    listening.bind(('127.0.0.1', 0))
    listening.listen()
    listening.accept()
wait_for_the_other()
"""
    config = gang(project(train=script), cluster, PyTorchConfiguration("Gloo", 2, 2))
    config.run_config.stall.after_s, config.run_config.stall.action = 5, "stop"
    run = experiment.submit(config)
    details = run.wait_for_completion(raise_on_error=False)
    assert details["error"]["error"]["reason"] == "stalled"
    assert "rank 0 in socket.accept (train.py:7)" in details["error"]["message"]
    assert {"logs/stalled/rank_0.txt", "logs/stalled/rank_1.txt"} <= set(run.get_file_names())
    assert any("rank 1" in warning["message"] for warning in details["warnings"])
