"""Runs of a yard on a real Slurm of four nodes."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from slurm_cluster import slurm
from slurm_runs import activity, job_of

from runyard import Experiment, Run, SlurmCompute
from runyard.errors import ComputeTargetException
from support import eventually, stop_yard, with_this_python

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("slurm")]
WAIT = "import os, sys, time\nprint('up', flush=True)\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.01)\n"


@pytest.fixture
def submit(experiment: Experiment, partition: SlurmCompute, project: Callable[..., Path]) -> Callable[..., Run]:
    def submitted(script: str, *arguments: object, **asked: object) -> Run:
        config = with_this_python(project(train=script), arguments=list(arguments))
        config.run_config.target = partition
        for name, value in asked.items():
            setattr(config.run_config, name, value)
        return experiment.submit(config)

    return submitted


def test_a_run_is_one_job_with_its_log_metrics_and_files(submit, home: Path) -> None:
    script = (
        "import os\nfrom runyard import Run\nrun = Run.get_context()\nrun.log('loss', 0.5)\nrun.tag('where', 'node')\n"
        "open('outputs/model.txt', 'w').write('m')\nprint('on', os.environ['SLURMD_NODENAME'])"
    )
    run = submit(script)
    details = run.wait_for_completion()
    assert details["status"] == "Completed"
    assert run.get_metrics() == {"loss": 0.5}
    assert "outputs/model.txt" in run.get_file_names()
    text = (home / "runs" / run.id / "slurm" / "job.sh").read_text()
    assert "#SBATCH --partition=main" in text


def test_a_run_that_waits_is_queued_with_the_reason_of_slurm(submit, home: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    busy = [submit(WAIT, gate) for _ in range(8)]
    eventually(lambda: all(run.get_status() == "Running" for run in busy), "eight runs have a CPU each")
    first, second = submit(WAIT, gate), submit(WAIT, gate)
    eventually(lambda: (first.get_status(), second.get_status()) == ("Queued", "Queued"), "two wait")
    eventually(lambda: "Resources" in activity(first) and "Priority" in activity(second), "Slurm said why")
    assert "1st of 2" in activity(first)
    assert "2nd of 2" in activity(second)
    job = job_of(second, home)
    second.cancel()
    assert second.wait_for_completion(raise_on_error=False)["status"] == "Canceled"
    eventually(lambda: "CANCELLED" in slurm("scontrol", "show", "job", job), "Slurm knows it, too")
    gate.touch()
    for run in [*busy, first]:
        assert run.wait_for_completion()["status"] == "Completed"


def test_a_killed_yard_adopts_its_jobs(submit, home: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    run = submit(WAIT, gate)
    eventually(lambda: run.get_status() == "Running", "it runs")
    stop_yard(home, signal.SIGKILL)
    gate.touch()
    assert run.wait_for_completion()["status"] == "Completed"


def test_a_cancelled_run_is_stopped_on_its_node(submit, home: Path, tmp_path: Path) -> None:
    run = submit(WAIT, tmp_path / "never")
    eventually(lambda: run.get_status() == "Running", "it runs")
    run.cancel()
    details = run.wait_for_completion(raise_on_error=False)
    assert details["status"] == "Canceled"


def test_more_nodes_than_the_partition_has_are_refused(submit) -> None:
    with pytest.raises(ComputeTargetException, match=r"asks for 5 nodes; partition 'main' has 4"):
        submit("print(1)", node_count=5, communicator="Gloo")
