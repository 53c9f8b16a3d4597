"""Retries: by end reason, in the same folder, with logs and metrics joined."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard import AmlCompute, ComputeTarget, Experiment, PyTorchConfiguration, Run, ScriptRunConfig, Workspace
from runyard.errors import ActivityFailedException, RunConfigurationException
from support import eventually, stop_yard, with_this_python

_names = (f"again-{number}" for number in itertools.count())

# Counts to ten, five steps per attempt; the first attempt then waits.
TRAINING = """
import os, pathlib, time
from runyard import Run
run, rank = Run.get_context(), os.environ['RUNYARD_RANK']
checkpoint = pathlib.Path(os.environ.get('RUNYARD_RESUME_FROM', 'nowhere')) / f'step-{rank}'
done = int(checkpoint.read_text()) if checkpoint.exists() else 0
for step in range(done, done + 5):
    run.log('step ' + rank, step)
pathlib.Path('outputs', f'step-{rank}').write_text(str(done + 5))
print('attempt', os.environ['RUNYARD_ATTEMPT'], 'from', done, flush=True)
if done == 0:
    time.sleep(600)
"""


@pytest.fixture
def cluster(workspace: Workspace) -> Iterator[AmlCompute]:
    target = ComputeTarget.create(workspace, next(_names), AmlCompute.provisioning_configuration(max_nodes=2))
    yield target
    target.delete()


@pytest.fixture
def config(project, cluster: AmlCompute) -> ScriptRunConfig:
    job = PyTorchConfiguration("Gloo", 2, 2)
    config = ScriptRunConfig(project(train=TRAINING), "train.py", compute_target=cluster, distributed_job_config=job)
    config.run_config.environment.python.user_managed_dependencies = True
    return config


def folder_of(run: Run) -> Path:
    return run.folder


def wait_for_lines(run: Run, *logs: str) -> None:
    paths = [folder_of(run) / "azureml-logs" / f"70_driver_log{name}.txt" for name in logs]
    eventually(lambda: all(path.exists() and path.stat().st_size for path in paths), "the script to run")


def kill_agent(run: Run, node: str = "") -> None:
    os.kill(int((folder_of(run) / node / "agent.lock").read_text()), signal.SIGKILL)


def test_a_lost_node_is_retried_with_logs_metrics_and_outputs_joined(
    experiment: Experiment, config: ScriptRunConfig
) -> None:
    config.max_attempts = 3
    run = experiment.submit(config)
    wait_for_lines(run, "_rank_0", "_rank_1")
    kill_agent(run, "nodes/1")
    details = run.wait_for_completion()
    assert details["status"] == "Completed"
    [earlier] = details["attempts"]
    assert (earlier["number"], earlier["reason"], earlier["node"]) == (1, "node lost", "node-1")
    log = (folder_of(run) / "azureml-logs" / "70_driver_log_rank_1.txt").read_text()
    assert log == "attempt 1 from 0\n--- attempt 2: node lost (node-1) ---\nattempt 2 from 5\n"
    metrics = run.get_metrics()
    assert [metrics[f"step {rank}"] for rank in range(2)] == [list(range(10))] * 2
    assert {"outputs/step-0", "outputs/step-1"} <= set(run.get_file_names())


def test_a_lost_node_fails_the_run_without_max_attempts(experiment: Experiment, config: ScriptRunConfig) -> None:
    run = experiment.submit(config)
    wait_for_lines(run, "_rank_0", "_rank_1")
    kill_agent(run, "nodes/1")
    with pytest.raises(ActivityFailedException, match="node-1: its agent has died") as caught:
        run.wait_for_completion()
    assert caught.value.error_details["error"]["reason"] == "node lost"


def test_attempts_are_counted(experiment: Experiment, project) -> None:
    config = with_this_python(project(train="import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"))
    config.max_attempts = 3
    config.run_config.retry_on = ["killed"]
    run = experiment.submit(config)
    with pytest.raises(ActivityFailedException, match="killed by SIGKILL"):
        run.wait_for_completion()
    assert [(attempt["number"], attempt["reason"]) for attempt in run.get_details()["attempts"]] == [
        (1, "killed"),
        (2, "killed"),
    ]


@pytest.mark.real
def test_a_lost_agent_of_a_single_script_is_retried_by_a_restarted_yard(
    home: Path, experiment: Experiment, project
) -> None:
    config = with_this_python(project(train=TRAINING))
    config.run_config.max_attempts = 2
    run = experiment.submit(config)
    wait_for_lines(run, "")
    stop_yard(home, signal.SIGKILL)
    kill_agent(run)
    assert run.wait_for_completion()["status"] == "Completed"
    assert run.get_metrics()["step 0"] == list(range(10))
    assert [attempt["reason"] for attempt in run.get_details()["attempts"]] == ["agent lost"]
    assert "--- attempt 2: agent lost ---" in (folder_of(run) / "azureml-logs/70_driver_log.txt").read_text()


def test_a_script_error_is_retried_only_if_retry_on_contains_it(experiment: Experiment, project) -> None:
    failing = "import os\nif os.environ['RUNYARD_ATTEMPT'] == '1': raise ValueError('bad lr')\nprint('better')"
    config = with_this_python(project(train=failing))
    config.max_attempts = 2
    run = experiment.submit(config)
    with pytest.raises(ActivityFailedException, match="bad lr"):
        run.wait_for_completion()
    assert "attempts" not in run.get_details()
    config.run_config.retry_on = ["script failed"]
    assert experiment.submit(config).wait_for_completion()["status"] == "Completed"


def test_a_retry_that_no_longer_fits_the_cluster_fails_and_keeps_earlier_outputs(
    experiment: Experiment, config: ScriptRunConfig, cluster: AmlCompute
) -> None:
    config.max_attempts = 2
    run = experiment.submit(config)
    wait_for_lines(run, "_rank_0", "_rank_1")
    cluster.update(max_nodes=1)
    kill_agent(run, "nodes/1")
    with pytest.raises(ActivityFailedException, match="the run requests 2 nodes"):
        run.wait_for_completion()
    assert [attempt["reason"] for attempt in run.get_details()["attempts"]] == ["node lost"]
    assert run.get_metrics()["step 0"] == list(range(5))
    assert "outputs/step-0" in run.get_file_names()


def test_a_canceled_run_has_no_further_attempt(experiment: Experiment, config: ScriptRunConfig) -> None:
    config.max_attempts = 5
    run = experiment.submit(config)
    wait_for_lines(run, "_rank_0", "_rank_1")
    run.cancel()
    run.wait_for_completion(raise_on_error=False)
    assert (run.get_status(), run.get_details().get("attempts")) == ("Canceled", None)


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("max_attempts", 0, "max_attempts must be at least 1"),
        ("max_attempts", "2", "max_attempts must be a whole number"),
        ("retry_on", ["bad luck"], "retry_on must be a list of 'node lost', 'preempted'"),
        ("retry_on", ["canceled"], "retry_on must be a list of"),
    ],
)
def test_invalid_retry_settings_are_refused(project, name: str, value: object, complaint: str) -> None:
    config = with_this_python(project(train=""))
    with pytest.raises(RunConfigurationException, match=complaint):
        setattr(config.run_config, name, value)
