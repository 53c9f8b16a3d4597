"""The text of a batch job, and what Slurm's own words are read as. Nothing here needs a Slurm."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from runyard.agent.slurm_node import complete_order, explain_end
from runyard.compute.amlcompute import partition_of
from runyard.compute.slurm.client import (
    Answer,
    Partition,
    QueuedJob,
    Slurm,
    SlurmSilent,
    parse_facts,
    parse_jobs,
    parse_partitions,
)
from runyard.compute.slurm.options import SlurmOptions, read_options
from runyard.compute.slurm.queue import fit
from runyard.compute.slurm.script import render
from runyard.compute.slurm.squeue import Look
from runyard.compute.slurm.states import Phase, end_reason, phase
from runyard.errors import ComputeTargetException
from runyard.launch.order import Node, WorkOrder
from runyard.lifecycle.state import End, EndReason
from runyard.spec.launch import TorchDistributed
from runyard.spec.resources import Resources

ORDER = WorkOrder("digits_1", "/home/me/.runyard/runs/digits_1", ("/env/bin/python", "train.py"))
MAIN = Partition("main", True, 4, 2, 4.0, 0, "1:00:00")


def rendered(order: WorkOrder = ORDER, options: SlurmOptions | None = None, there: Partition | None = None) -> str:
    return render(order, options or SlurmOptions("main"), python="/y/bin/python", kit="/k", there=there)


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
        '  echo "the home folder of the yard and its Python must be on a file system that every node has" >&2\n'
        "  exit 1\n"
        "fi\n"
        "export PYTHONPATH=/k\n"
        f"exec /y/bin/python -S -m runyard.agent.slurm_node {folder}/order.json\n"
    )


def test_what_a_run_asks_for_becomes_flags() -> None:
    order = replace(
        ORDER,
        resources=Resources(2, 2, cpus_per_process=3, gpus_per_process=1, memory_gb=1.5),
        launch=TorchDistributed(),
        nodes=(Node("node-0"), Node("node-1")),
        processes_per_node=2,
        max_run_duration_seconds=3600,
    )
    further = ("--exclusive", "--comment=a b", "--mail-user=me@here")
    options = SlurmOptions("gpu", "lab", "long", "a100&nvlink", options=further)
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


def test_more_processes_than_a_node_has_cpus_take_turns() -> None:
    order = replace(ORDER, resources=Resources(1, 8))
    assert "--cpus-per-task=2" in flags(rendered(order, there=MAIN))


def test_a_node_that_was_lost_is_avoided_where_there_are_others() -> None:
    again = replace(ORDER, attempt=2, retry_reason="node lost (n2)")
    assert "--exclude=n2" in flags(rendered(again, there=MAIN))
    assert "--exclude" not in rendered(again, there=replace(MAIN, nodes=1))
    assert "--exclude" not in rendered(replace(again, retry_reason="preempted"), there=MAIN)


def test_odd_characters_in_the_home_stay_what_they_are() -> None:
    text = rendered(replace(ORDER, folder="/home/a b/%j#1/runs/x"))
    assert "--output='/home/a b/%%j#1/runs/x'/slurm/output-1.txt" in flags(text)
    assert "--chdir='/home/a b/%j#1/runs/x'" in flags(text)


@pytest.mark.parametrize(
    ("configuration", "text"),
    [
        ({}, "needs a partition"),
        ({"partition": "main", "colour": "red"}, "colour is not known"),
        ({"partition": "main", "options": ["exclusive"]}, "'exclusive' is not a flag of sbatch"),
        ({"partition": "main", "options": ["--nodes=3"]}, "--nodes cannot be among the options: node_count"),
        ({"partition": "main", "options": ["-N3"]}, "-N cannot be among the options: node_count"),
        ({"partition": "main\n#SBATCH --x"}, "has a line break"),
    ],
)
def test_what_cannot_be_meant_is_refused(configuration, text: str) -> None:
    with pytest.raises(ComputeTargetException, match=text):
        read_options("gpu", configuration)


@pytest.mark.parametrize(
    ("resources", "text"),
    [
        (Resources(5), r"asks for 5 nodes; partition 'main' has 4"),
        (Resources(cpus_per_process=3), r"3 CPUs per process; the largest node of partition 'main' has 2"),
        (Resources(memory_gb=9), r"9 GB of memory; the largest node of partition 'main' has 4 GB"),
    ],
)
def test_what_a_partition_can_never_give_is_refused(resources: Resources, text: str) -> None:
    with pytest.raises(ComputeTargetException, match=text):
        fit(resources, MAIN)


def test_a_gpu_that_is_not_there_is_a_warning_and_too_many_are_an_error() -> None:
    assert fit(Resources(gpus_per_process=1), MAIN) == (
        Resources(),
        ("a GPU was asked for and partition 'main' has none: it runs on the CPU",),
    )
    with pytest.raises(ComputeTargetException, match="3 GPUs per node; the largest node of partition 'main' has 2"):
        fit(Resources(1, 3, gpus_per_process=1), replace(MAIN, gpus=2, cpus=8))


def test_every_state_has_a_phase_and_an_unknown_one_is_not_an_end() -> None:
    assert phase("PENDING") is Phase.WAITING
    assert phase("RUNNING") is Phase.RUNNING
    assert phase("COMPLETING") is Phase.ENDING
    assert phase("CANCELLED by 1000") is Phase.ENDED
    assert phase("SOMETHING_NEW") is Phase.RUNNING
    assert end_reason("PREEMPTED") is EndReason.PREEMPTED
    assert end_reason("NODE_FAIL") is EndReason.NODE_LOST
    assert end_reason("FAILED") is None


def test_listings_are_read_and_what_is_no_listing_is_passed_over() -> None:
    said = "12|PENDING|Resources\n13|PENDING|ReqNodeNotAvail, UnavailableNodes:n[1-2]\nslurm: a warning\n"
    assert parse_jobs(said) == [
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


def test_facts_of_a_job_are_read_with_blanks_in_them() -> None:
    facts = parse_facts("JobId=7 JobName=a b JobState=FAILED Reason=NonZeroExitCode ExitCode=1:0 Command=/a b/c\n")
    assert (facts["JobId"], facts["JobName"], facts["JobState"]) == ("7", "a b", "FAILED")
    assert (facts["ExitCode"], facts["Command"]) == ("1:0", "/a b/c")


def test_a_refusal_is_told_in_the_words_of_sbatch_and_silence_is_another_thing() -> None:
    refusing = Slurm(lambda words: Answer(1, "", "sbatch: error: Batch job submission failed: Invalid account\n"))
    with pytest.raises(ComputeTargetException, match="sbatch refused the job: Batch job submission failed: Invalid"):
        refusing.submit("job.sh")
    silent = Slurm(lambda words: Answer(1, "", "squeue: error: Unable to contact slurm controller (connect failure)"))
    with pytest.raises(SlurmSilent):
        silent.jobs("main")


def test_the_place_in_the_line_and_the_reason_are_told() -> None:
    look = Look(0.0, 0.0, {}, {str(number): number for number in range(1, 8)})
    assert look.why_waiting("3", "Priority") == "waiting in Slurm; 3rd of 7; Priority (others come first)"
    assert look.why_waiting("7", "None") == "waiting in Slurm; 7th of 7"


def test_an_agent_hands_on_what_scripts_ask_for_and_no_more() -> None:
    told = {"SLURM_JOB_ID": "7", "CUDA_VISIBLE_DEVICES": "1", "SLURM_NTASKS": "2", "SLURM_JOBID": "7"}
    order = complete_order(replace(ORDER, variables={"A": "b"}), 1, told, [Node("n1"), Node("n2")])
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
def test_a_signal_from_slurm_has_the_reason_that_slurm_gives(facts: dict[str, str], reason: EndReason) -> None:
    assert explain_end(End(EndReason.KILLED, "SIGTERM"), facts).reason is reason


def test_a_cluster_is_a_partition_where_the_home_says_so(tmp_path: Path) -> None:
    assert partition_of(tmp_path, "any", "STANDARD_NC6") is None
    (tmp_path / "config.toml").write_text(
        '[amlcompute]\nengine = "slurm"\npartition = "main"\n'
        '[amlcompute.vm_size.STANDARD_NC6]\npartition = "gpu"\n'
        '[amlcompute.name.mine]\nengine = "local"\n'
    )
    assert partition_of(tmp_path, "any", "") == SlurmOptions("main")
    assert partition_of(tmp_path, "any", "Standard_NC6") == SlurmOptions("gpu")
    assert partition_of(tmp_path, "mine", "STANDARD_NC6") is None
    (tmp_path / "config.toml").write_text('[amlcompute]\nengine = "cloud"\n')
    with pytest.raises(ComputeTargetException, match="has no engine 'cloud'"):
        partition_of(tmp_path, "any", "")
    (tmp_path / "config.toml").write_text("[amlcompute\n")
    with pytest.raises(ComputeTargetException, match="cannot be read"):
        partition_of(tmp_path, "any", "")
