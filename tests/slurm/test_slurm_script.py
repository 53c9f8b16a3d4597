"""The text of batch jobs, and the parsing of Slurm's output. No Slurm is needed."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from runyard.agent.slurm_node import complete_order, explain_end
from runyard.compute.amlcompute import partition_options
from runyard.compute.slurm.client import (
    CommandResult,
    Partition,
    QueuedJob,
    Slurm,
    SlurmUnavailable,
    parse_fields,
    parse_jobs,
    parse_partitions,
)
from runyard.compute.slurm.fit import fit
from runyard.compute.slurm.options import SlurmOptions, read_options
from runyard.compute.slurm.script import render
from runyard.compute.slurm.squeue import JobListing
from runyard.compute.slurm.states import Phase, end_reason, phase
from runyard.errors import ComputeTargetException
from runyard.launch.order import Node, WorkOrder
from runyard.lifecycle.state import End, EndReason
from runyard.spec.folder import RunFolder
from runyard.spec.launch import TorchDistributed
from runyard.spec.resources import Resources

ORDER = WorkOrder("digits_1", "/home/me/.runyard/runs/digits_1", ("/env/bin/python", "train.py"))
MAIN = Partition("main", True, 4, 2, 4.0, 0, "1:00:00")


def rendered(order: WorkOrder = ORDER, options: SlurmOptions | None = None, partition: Partition | None = None) -> str:
    return render(order, options or SlurmOptions("main"), python="/y/bin/python", kit="/k", partition=partition)


def flags(text: str) -> list[str]:
    return [line.removeprefix("#SBATCH ") for line in text.splitlines() if line.startswith("#SBATCH")]


def test_the_job_of_one_process_is_this_text() -> None:
    folder = "/home/me/.runyard/runs/digits_1"
    assert rendered() == (
        "#!/bin/sh\n"
        "#SBATCH --job-name=digits_1@2078714f3652.1\n"
        "#SBATCH --partition=main\n"
        "#SBATCH --nodes=1\n"
        "#SBATCH --ntasks=1\n"
        "#SBATCH --ntasks-per-node=1\n"
        "#SBATCH --cpus-per-task=1\n"
        "#SBATCH --no-requeue\n"
        f"#SBATCH --output={folder}/slurm/output-1.txt\n"
        "#SBATCH --open-mode=append\n"
        f"#SBATCH --chdir={folder}\n"
        "\n"
        "# digits_1, attempt 1: an agent on each node starts the processes of the run\n"
        f"if ! [ -x /y/bin/python ] || ! [ -r {folder}/order.json ]; then\n"
        f'  echo "$(hostname) cannot read "{folder}/order.json" or cannot run "/y/bin/python >&2\n'
        '  echo "the home folder of the yard and its Python must be on a file system that all nodes share" >&2\n'
        "  exit 1\n"
        "fi\n"
        "export PYTHONPATH=/k\n"
        f"exec /y/bin/python -S -m runyard.agent.slurm_node {folder}/order.json\n"
    )


def test_the_resources_of_a_run_become_flags() -> None:
    order = replace(
        ORDER,
        resources=Resources(2, 2, cpus_per_process=3, gpus_per_process=1, memory_gb=1.5),
        launch=TorchDistributed(),
        nodes=(Node("node-0"), Node("node-1")),
        processes_per_node=2,
        max_run_duration_seconds=3600,
    )
    extra_flags = ("--exclusive", "--comment=a b", "--mail-user=me@here")
    options = SlurmOptions("gpu", "lab", "long", "a100&nvlink", options=extra_flags)
    text = rendered(order, options)
    assert flags(text)[1:13] == [
        "--partition=gpu",
        "--account=lab",
        "--qos=long",
        "--constraint='a100&nvlink'",
        "--nodes=2",
        "--ntasks=2",
        "--ntasks-per-node=1",
        "--cpus-per-task=6",
        "--mem=1536M",
        "--gpus-per-node=2",
        "--time=63",
        "--no-requeue",
    ]
    assert flags(text)[-3:] == ["--exclusive", "--comment='a b'", "--mail-user=me@here"]
    assert "exec srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpus-per-task=6 " in text


@pytest.mark.parametrize("node_rank", [0, 1])
def test_the_task_of_a_node_reports_an_agent_that_was_killed(tmp_path: Path, node_rank: int) -> None:
    order = replace(ORDER, folder=str(tmp_path), attempt=3, nodes=(Node("a"), Node("b")), resources=Resources(2))
    words = shlex.split(rendered(order).partition("\nexec ")[2])
    task = words[words.index("/bin/sh") : words.index("/y/bin/python")]
    for script, code in (("exit 0", 0), ("kill -KILL $$", 137), ("kill -TERM $PPID; exit 0", 0)):
        result = subprocess.run([*task, "/bin/sh", "-c", script], env={**os.environ, "SLURM_NODEID": str(node_rank)})
        assert result.returncode == code
        lost = RunFolder(tmp_path).node(node_rank).lost
        if code:
            assert json.loads(lost.read_text()) == {"attempt": 3, "evidence": "its agent ended with exit code 137"}
        assert lost.exists() == bool(code)
        lost.unlink(missing_ok=True)


def test_more_processes_than_cpus_share_the_cpus_of_a_node() -> None:
    order = replace(ORDER, resources=Resources(1, 8))
    assert "--cpus-per-task=2" in flags(rendered(order, partition=MAIN))


def test_a_lost_node_is_excluded_if_there_are_others() -> None:
    again = replace(ORDER, attempt=2, lost_node="n2")
    assert "--exclude=n2" in flags(rendered(again, partition=MAIN))
    assert "--exclude" not in rendered(again, partition=replace(MAIN, nodes=1))
    assert "--exclude" not in rendered(replace(again, lost_node=""), partition=MAIN)


def test_special_characters_in_paths_are_quoted() -> None:
    text = rendered(replace(ORDER, folder="/home/a b/%j#1/runs/x"))
    assert "--output='/home/a b/%%j#1/runs/x'/slurm/output-1.txt" in flags(text)
    assert "--chdir='/home/a b/%j#1/runs/x'" in flags(text)


@pytest.mark.parametrize(
    ("configuration", "text"),
    [
        ({}, "needs a partition"),
        ({"partition": "main", "color": "red"}, "unknown option color"),
        ({"partition": "main", "options": ["exclusive"]}, "'exclusive' is not an sbatch flag"),
        ({"partition": "main", "options": ["--nodes=3"]}, "option --nodes is not allowed: node_count"),
        ({"partition": "main", "options": ["-N3"]}, "option -N is not allowed: node_count"),
        ({"partition": "main\n#SBATCH --x"}, "contains a line break"),
    ],
)
def test_invalid_options_are_refused(configuration, text: str) -> None:
    with pytest.raises(ComputeTargetException, match=text):
        read_options("gpu", configuration)


@pytest.mark.parametrize(
    ("resources", "text"),
    [
        (Resources(5), r"requests 5 nodes; partition 'main' has 4"),
        (Resources(cpus_per_process=3), r"3 CPUs per process; the largest node of partition 'main' has 2"),
        (Resources(memory_gb=9), r"9 GB of memory; the largest node of partition 'main' has 4 GB"),
    ],
)
def test_a_run_that_exceeds_the_partition_is_refused(resources: Resources, text: str) -> None:
    with pytest.raises(ComputeTargetException, match=text):
        fit(resources, MAIN)


def test_a_missing_gpu_is_a_warning_and_too_many_gpus_are_an_error() -> None:
    assert fit(Resources(gpus_per_process=1), MAIN) == (
        Resources(),
        ("a GPU was requested and the largest node of partition 'main' has none: running on the CPU",),
    )
    with pytest.raises(ComputeTargetException, match="3 GPUs; the largest node of partition 'main' has 2"):
        fit(Resources(1, 3, gpus_per_process=1), replace(MAIN, gpus=2, cpus=8))


def test_an_unknown_state_counts_as_running() -> None:
    assert phase("PENDING") is Phase.WAITING
    assert phase("RUNNING") is Phase.RUNNING
    assert phase("COMPLETING") is Phase.ENDING
    assert phase("CANCELLED by 1000") is Phase.ENDED
    assert phase("SOMETHING_NEW") is Phase.RUNNING
    assert end_reason("PREEMPTED") is EndReason.PREEMPTED
    assert end_reason("NODE_FAIL") is EndReason.NODE_LOST
    assert end_reason("FAILED") is None


def test_listings_are_parsed_and_other_lines_are_skipped() -> None:
    output = "12|PENDING|Resources\n13|PENDING|ReqNodeNotAvail, UnavailableNodes:n[1-2]\nslurm: a warning\n"
    assert parse_jobs(output) == [
        QueuedJob("12", "PENDING", "Resources"),
        QueuedJob("13", "PENDING", "ReqNodeNotAvail, UnavailableNodes:n[1-2]"),
    ]
    main, old = parse_partitions(
        "main|up|3|2|4000|(null)|infinite\n"
        "main|up|1|64+|512000|gpu:a100:4(S:0-1),shard:8|infinite\n"
        "old|down|1|2|1|x|1:00\n"
    )
    assert main == Partition("main", True, 4, 64, 500.0, 4, "infinite")
    assert not old.is_up


def test_fields_of_a_job_may_contain_spaces() -> None:
    fields = parse_fields("JobId=7 JobName=a b JobState=FAILED Reason=NonZeroExitCode ExitCode=1:0 Command=/a b/c\n")
    assert (fields["JobId"], fields["JobName"], fields["JobState"]) == ("7", "a b", "FAILED")
    assert (fields["ExitCode"], fields["Command"]) == ("1:0", "/a b/c")


def test_a_refusal_has_the_message_of_sbatch_and_differs_from_unavailability() -> None:
    refusing = Slurm(lambda argv: CommandResult(1, "", "sbatch: error: Batch job submission failed: Invalid account\n"))
    with pytest.raises(ComputeTargetException, match="sbatch refused the job: Batch job submission failed: Invalid"):
        refusing.submit("job.sh")
    unavailable = Slurm(
        lambda argv: CommandResult(1, "", "squeue: error: Unable to contact slurm controller (connect failure)")
    )
    with pytest.raises(SlurmUnavailable):
        unavailable.jobs("main")


def test_the_waiting_reason_has_position_and_explanation() -> None:
    listing = JobListing(0.0, 0.0, {}, {str(number): number for number in range(1, 8)})
    assert (
        listing.waiting_reason("3", "Priority")
        == "waiting in Slurm; 3rd of 7; Priority (jobs with a higher priority come first)"
    )
    assert listing.waiting_reason("7", "None") == "waiting in Slurm; 7th of 7"


def test_an_agent_passes_only_some_slurm_variables_to_scripts() -> None:
    environment = {"SLURM_JOB_ID": "7", "CUDA_VISIBLE_DEVICES": "1", "SLURM_NTASKS": "2", "SLURM_JOBID": "7"}
    order = complete_order(replace(ORDER, variables={"A": "b"}), 1, environment, [Node("n1"), Node("n2")])
    assert order.variables == {"A": "b", "SLURM_JOB_ID": "7", "CUDA_VISIBLE_DEVICES": "1"}
    assert (order.node_rank, [node.name for node in order.nodes]) == (1, ["n1", "n2"])


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"JobState": "COMPLETING", "PreemptTime": "2026-11-16T00:00:00"}, EndReason.PREEMPTED),
        ({"JobState": "COMPLETING", "Reason": "TimeLimit", "TimeLimit": "00:01:00"}, EndReason.TIMED_OUT),
        ({"JobState": "NODE_FAIL"}, EndReason.NODE_LOST),
        ({"JobState": "CANCELLED", "PreemptTime": "None"}, EndReason.CANCELED),
        ({"JobState": "RUNNING"}, EndReason.KILLED),
        ({}, EndReason.KILLED),
    ],
)
def test_a_signal_from_slurm_has_slurms_reason(facts: dict[str, str], reason: EndReason) -> None:
    assert explain_end(End(EndReason.KILLED, "SIGTERM"), facts).reason is reason


def test_the_configuration_file_maps_clusters_to_partitions(tmp_path: Path) -> None:
    assert partition_options(tmp_path, "any", "STANDARD_NC6") is None
    (tmp_path / "config.toml").write_text(
        '[amlcompute]\nengine = "slurm"\npartition = "main"\n'
        '[amlcompute.vm_size.STANDARD_NC6]\npartition = "gpu"\n'
        '[amlcompute.name.mine]\nengine = "local"\n'
    )
    assert partition_options(tmp_path, "any", "") == SlurmOptions("main")
    assert partition_options(tmp_path, "any", "Standard_NC6") == SlurmOptions("gpu")
    assert partition_options(tmp_path, "mine", "STANDARD_NC6") is None
    (tmp_path / "config.toml").write_text('[amlcompute]\nengine = "cloud"\n')
    with pytest.raises(ComputeTargetException, match="has no engine 'cloud'"):
        partition_options(tmp_path, "any", "")
    (tmp_path / "config.toml").write_text("[amlcompute\n")
    with pytest.raises(ComputeTargetException, match="cannot read"):
        partition_options(tmp_path, "any", "")
