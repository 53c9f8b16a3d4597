"""Runs of a yard on a real Slurm of four nodes."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from slurm_cluster import slurm
from slurm_runs import activity, job_of

from runyard import AmlCompute, ComputeTarget, Estimator, Experiment, Resources, Run, SlurmCompute, Workspace
from runyard.errors import ComputeTargetException
from support import a_home, eventually, stop_yard, with_this_python

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("slurm")]
WAIT = "import os, sys, time\nprint('up', flush=True)\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.01)\n"


@pytest.fixture
def submit(experiment: Experiment, partition: SlurmCompute, project: Callable[..., Path]) -> Callable[..., Run]:
    def submit_script(script: str, *arguments: object, **settings: object) -> Run:
        config = with_this_python(project(train=script), arguments=list(arguments))
        config.run_config.target = partition
        for name, value in settings.items():
            setattr(config.run_config, name, value)
        return experiment.submit(config)

    return submit_script


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


def test_a_waiting_run_is_queued_with_slurms_reason(submit, home: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    busy = [submit(WAIT, gate) for _ in range(8)]
    eventually(lambda: all(run.get_status() == "Running" for run in busy), "eight runs have a CPU each")
    first, second = submit(WAIT, gate), submit(WAIT, gate)
    eventually(lambda: (first.get_status(), second.get_status()) == ("Queued", "Queued"), "two wait")
    eventually(lambda: "Resources" in activity(first) and "Priority" in activity(second), "Slurm reports the reasons")
    assert "1st of 2" in activity(first)
    assert "2nd of 2" in activity(second)
    job = job_of(second, home)
    second.cancel()
    assert second.wait_for_completion(raise_on_error=False)["status"] == "Canceled"
    eventually(lambda: "CANCELLED" in slurm("scontrol", "show", "job", job), "Slurm has canceled it")
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


def test_a_canceled_run_is_stopped_on_its_node(submit, home: Path, tmp_path: Path) -> None:
    run = submit(WAIT, tmp_path / "never")
    eventually(lambda: run.get_status() == "Running", "it runs")
    run.cancel()
    details = run.wait_for_completion(raise_on_error=False)
    assert details["status"] == "Canceled"


def test_more_nodes_than_the_partition_has_are_refused(submit) -> None:
    with pytest.raises(ComputeTargetException, match=r"requests 5 nodes; partition 'main' has 4"):
        submit("print(1)", node_count=5, communicator="Gloo")


def test_a_refusal_of_sbatch_is_the_error_of_the_run(
    experiment: Experiment, workspace: Workspace, slurm_folder: Path, project
) -> None:
    target = ComputeTarget.attach(
        workspace, "refusing", SlurmCompute.attach_configuration("main", options=["--dependency=what"])
    )
    config = with_this_python(project(train="print(1)"))
    config.run_config.target = target
    run = experiment.submit(config)
    assert run.wait_for_completion(raise_on_error=False)["status"] == "Failed"
    assert "sbatch refused the job: " in run.end.message
    assert "dependency" in run.end.message.lower()
    target.detach()


def test_invalid_targets_are_refused_and_not_stored(workspace: Workspace, partition: SlurmCompute) -> None:
    with pytest.raises(ComputeTargetException, match="Slurm has no partition 'nope'"):
        ComputeTarget.attach(workspace, "nope", SlurmCompute.attach_configuration("nope"))
    with pytest.raises(ComputeTargetException, match="a different compute target"):
        ComputeTarget.attach(workspace, partition.name, SlurmCompute.attach_configuration("urgent"))
    with pytest.raises(ComputeTargetException, match="option --output is not allowed"):
        ComputeTarget.attach(workspace, "nope", SlurmCompute.attach_configuration("main", options=["--output=x"]))
    with pytest.raises(ComputeTargetException):
        ComputeTarget(workspace, "nope")


def test_a_run_gets_the_gpus_that_slurm_allocated(
    experiment: Experiment, workspace: Workspace, slurm_folder: Path, project
) -> None:
    target = ComputeTarget.attach(workspace, "gpus", SlurmCompute.attach_configuration("gpu"))
    script = "import os\nfrom runyard import Run\nRun.get_context().log('gpus', os.environ['CUDA_VISIBLE_DEVICES'])"
    estimator = Estimator(
        project(train=script),
        entry_script="train.py",
        compute_target=target,
        user_managed=True,
        resources=Resources(gpus_per_process=2),
    )
    run = experiment.submit(estimator)
    assert run.wait_for_completion()["status"] == "Completed"
    assert run.get_metrics() == {"gpus": "0,1"}
    target.detach()


def test_an_amlcompute_uses_the_partition_in_the_configuration_file(
    slurm_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, project
) -> None:
    with a_home() as folder:
        monkeypatch.setenv("RUNYARD_HOME", str(folder))
        (folder / "config.toml").write_text('[amlcompute]\nengine = "slurm"\npartition = "main"\n')
        workspace = Workspace()
        configuration = AmlCompute.provisioning_configuration(vm_size="STANDARD_NC6", max_nodes=2)
        cluster = ComputeTarget.create(workspace, "cluster", configuration)
        cluster.wait_for_completion(show_output=True)
        assert cluster.get_status().serialize()["currentNodeCount"] == 2
        config = with_this_python(project(train="import os\nprint('job', os.environ['SLURM_JOB_ID'])"))
        config.run_config.target = cluster
        run = Experiment(workspace, "old").submit(config)
        assert run.wait_for_completion()["status"] == "Completed"
        assert (folder / "runs" / run.id / "slurm" / "job.sh").exists()
        config.run_config.node_count = 3
        config.run_config.communicator = "Gloo"
        with pytest.raises(ComputeTargetException, match="requests 3 nodes; the cluster has at most 2"):
            Experiment(workspace, "old").submit(config)
        cluster.update(max_nodes=3)
        assert cluster.get_status().serialize()["currentNodeCount"] == 3
        assert "#SBATCH --nodes=3" in str(Experiment(workspace, "old").submit(config, dry_run=True))


def test_a_home_with_special_characters_works(slurm_folder: Path, monkeypatch: pytest.MonkeyPatch, project) -> None:
    with a_home() as folder:
        home = folder / "a b'%j#"
        home.mkdir()
        monkeypatch.setenv("RUNYARD_HOME", str(home))
        target = ComputeTarget.attach(Workspace(), "main", SlurmCompute.attach_configuration("main"))
        config = with_this_python(project(train="import sys\nprint(sys.argv[1:])"), arguments=["a b", "$HOME", "*"])
        config.run_config.target = target
        run = Experiment(Workspace(), "odd").submit(config)
        assert run.wait_for_completion()["status"] == "Completed"
        stop_yard(home)


def test_missing_slurm_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with a_home() as folder:
        monkeypatch.setenv("RUNYARD_HOME", str(folder))
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(ComputeTargetException, match="Slurm is not installed here: sinfo not found"):
            ComputeTarget.attach(Workspace(), "main", SlurmCompute.attach_configuration("main"))
