"""Commands and variables of every process of a distributed run, compared as text."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from runyard.launch import mpi
from runyard.launch.order import Node, WorkOrder
from runyard.launch.plan import World, all_ranks, describe, plan, ports_needed
from runyard.spec.launch import Mpi, ParameterServer, Single, TorchDistributed

NODES = (Node("node-0", "10.0.0.1"), Node("node-1", "10.0.0.2"))
ARGV = ("/env/bin/python", "train.py", "--rank", "$RUNYARD_RANK")

TORCH = """\
# rank 0 on node-0 (10.0.0.1)
cd /runs/r/work
  AZUREML_CR_NODE_RANK=0
  AZ_BATCHAI_JOB_MASTER_NODE_IP=10.0.0.1
  AZ_BATCHAI_MPI_MASTER_NODE=10.0.0.1
  'AZ_BATCHAI_PYTORCH_INIT_METHOD=tcp://10.0.0.1:<port on node-0>'
  AZ_BATCHAI_TASK_INDEX=0
  AZ_BATCH_HOST_LIST=10.0.0.1,10.0.0.2
  'AZ_BATCH_MASTER_NODE=10.0.0.1:<port on node-0>'
  LOCAL_RANK=0
  LOCAL_WORLD_SIZE=1
  MASTER_ADDR=10.0.0.1
  'MASTER_PORT=<port on node-0>'
  NODE_RANK=0
  RANK=0
  RUNYARD_NODE_RANK=0
  RUNYARD_RANK=0
  WORLD_SIZE=2
  /env/bin/python train.py --rank 0
  >> /runs/r/azureml-logs/70_driver_log_rank_0.txt

# rank 1 on node-1 (10.0.0.2)
cd /runs/r/work
  AZUREML_CR_NODE_RANK=1
  AZ_BATCHAI_JOB_MASTER_NODE_IP=10.0.0.1
  AZ_BATCHAI_MPI_MASTER_NODE=10.0.0.1
  'AZ_BATCHAI_PYTORCH_INIT_METHOD=tcp://10.0.0.1:<port on node-0>'
  AZ_BATCHAI_TASK_INDEX=1
  AZ_BATCH_HOST_LIST=10.0.0.1,10.0.0.2
  'AZ_BATCH_MASTER_NODE=10.0.0.1:<port on node-0>'
  LOCAL_RANK=0
  LOCAL_WORLD_SIZE=1
  MASTER_ADDR=10.0.0.1
  'MASTER_PORT=<port on node-0>'
  NODE_RANK=1
  RANK=1
  RUNYARD_NODE_RANK=1
  RUNYARD_RANK=1
  WORLD_SIZE=2
  /env/bin/python train.py --rank 1
  >> /runs/r/azureml-logs/70_driver_log_rank_1.txt
"""

MPI = """\
# on node-0
/env/bin/mpirun --allow-run-as-root -np 4 --bind-to none --hostfile /runs/r/mpi/hostfile --map-by \
ppr:2:node:oversubscribe --wdir / --prtemca plm_ssh_agent /runs/r/mpi/relay.sh --prtemca plm_ssh_no_tree_spawn 1 \
/bin/sh -c 'exec /bin/sh "$RUNYARD_RUN_FOLDER"/mpi/rank-on-"$RUNYARD_NODE_RANK".sh'

# hostfile
node-0 slots=2
node-1 slots=2

# rank 0 on node-0 (10.0.0.1)
"""

RANK_SCRIPT = """\
#!/bin/sh
export RUNYARD_RANK=$OMPI_COMM_WORLD_RANK
unset TMPDIR
export OMPI_MCA_btl_sm_backing_directory=/dev/shm/x
export OMPI_MCA_osc_sm_backing_directory=/dev/shm/x
export OMPI_MCA_btl_tcp_if_include="${OMPI_MCA_btl_tcp_if_include:-eth1}"
exec >> /logs/70_driver_log_rank_"$RUNYARD_RANK".txt 2>&1 < /dev/null
cd /work || exit 1
report() {
  echo "$*" >> /nodes/0/exits
  echo 1<>/tmp/wakeup
}
report began "$RUNYARD_RANK" $$
trap : TERM INT  # the script receives them too; its end must still be reported
/env/bin/python train.py --rank "${RUNYARD_RANK}" '/data/$x'"${OMPI_COMM_WORLD_RANK}"/y '' 'a'"'"'b'
status=$?
report ended "$RUNYARD_RANK" $status
exit $status
"""


def orders(launch, nodes=NODES, **fields):
    order = WorkOrder("r", "/runs/r", ARGV, {}, nodes=nodes, launch=launch, **fields)
    return [replace(order, node_rank=number) for number in range(len(nodes))]


def test_torch_as_text():
    """B7.43."""
    assert describe(orders(TorchDistributed())) == TORCH


def test_mpi_as_text():
    """B7.42."""
    text = describe(orders(Mpi(), processes_per_node=2, mpirun="/env/bin/mpirun"))
    assert text.replace("--mca mpi_yield_when_idle 1 ", "").startswith(MPI)
    assert text.count("# rank ") == 4
    assert "OMPI_COMM_WORLD_SIZE=4" in text


def test_mpi_rank_script_as_text():
    """B7.42."""
    argv = (*ARGV, "$DATA${OMPI_COMM_WORLD_RANK}/y", "", "a'b")
    text = mpi.rank_script(
        argv,
        {"DATA": "/data/$x", "RUNYARD_RANK": "0"},
        work="/work",
        interface="eth1",
        log_prefix="/logs/70_driver_log_rank_",
        exits="/nodes/0/exits",
        wakeup_pipe="/tmp/wakeup",
        shared_memory="/dev/shm/x",
        tmpdir="",
    )
    assert text == RANK_SCRIPT


def test_secrets_in_arguments_of_mpi_ranks_are_left_to_the_shell(tmp_path):
    report = 'import sys; open(sys.argv[1], "w").write("|".join(sys.argv[2:]))'
    text = mpi.rank_script(
        (sys.executable, "-c", report, str(tmp_path / "arguments"), "--token=$TOKEN", "$TOKEN", "${PLAIN}"),
        {"TOKEN": "open 'sesame'", "PLAIN": "seen"},
        work=str(tmp_path),
        interface="",
        log_prefix=str(tmp_path / "log_"),
        exits=str(tmp_path / "exits"),
        wakeup_pipe=str(tmp_path / "pipe"),
        shared_memory="",
        tmpdir="",
        secrets=("TOKEN",),
    )
    assert "sesame" not in text
    variables = {"TOKEN": "open 'sesame'", "OMPI_COMM_WORLD_RANK": "0", "PATH": os.defpath}
    subprocess.run(["sh", "-c", text], env=variables, check=True)
    assert (tmp_path / "arguments").read_text() == "--token=open 'sesame'|open 'sesame'|seen"


def test_mpi_components_that_rely_on_host_names_are_off_for_simulated_nodes():
    simulated = World((Node("node-0"), Node("node-1")), 1, (("1",), ()))
    words = mpi.command("mpirun", simulated, root=Path("/r"), relay="/r/mpi/relay.sh", cores=2)
    assert words[words.index("coll") + 1] == "^han"
    assert "mpi_yield_when_idle" not in words
    assert "mpi_yield_when_idle" in mpi.command("mpirun", simulated, root=Path("/r"), relay="", cores=1)


def test_machines_with_the_same_host_name_are_treated_as_simulated_nodes():
    nodes = (Node("a", "10.0.0.1"), Node("b", "10.0.0.2"))
    assert World(nodes, 1, ((), ()), hosts=("localhost", "localhost")).is_on_one_machine
    assert not World(nodes, 1, ((), ()), hosts=("a", "b")).is_on_one_machine


def test_a_single_process_as_text():
    text = describe(WorkOrder("r", "/runs/r", ARGV, {"RUNYARD_RANK": "0", "A": "1"}))
    assert text == (
        "# rank 0 on node-0 (127.0.0.1)\ncd /runs/r/work\n  A=1\n  RUNYARD_RANK=0\n"
        "  /env/bin/python train.py --rank 0\n  >> /runs/r/azureml-logs/70_driver_log.txt\n"
    )


def test_tf_config_is_the_documented_text():
    """B7.44."""
    world = World(NODES, 1, (("2222", "2223"), ("2222",)))
    launch = ParameterServer(workers=2, servers=1)
    tasks = [task for number in range(2) for task in plan(launch, world, number, ARGV, {})]
    assert [(task.rank, task.title, task.node) for task in tasks] == [
        (0, "worker 0", 0),
        (2, "ps 0", 0),
        (1, "worker 1", 1),
    ]
    assert tasks[1].variables["TF_CONFIG"] == (
        '{"cluster": {"ps": ["10.0.0.1:2223"], "worker": ["10.0.0.1:2222", "10.0.0.2:2222"]}, '
        '"task": {"type": "ps", "index": 0}, "environment": "cloud"}'
    )
    assert tasks[1].variables["AZ_BATCHAI_PS_HOSTS"] == "10.0.0.1:2223"
    assert tasks[1].variables["AZ_BATCHAI_WORKER_HOSTS"] == "10.0.0.1:2222,10.0.0.2:2222"
    assert tasks[1].variables["AZ_BATCHAI_TASK_INDEX"] == "0"


def test_a_chief_is_the_first_worker_and_an_evaluator_is_not_in_the_cluster():
    world = World(NODES, 1, (("1", "2"), ("1", "2")))
    tasks = all_ranks(ParameterServer(workers=2, servers=1, chief=True, evaluator=True), world)
    assert [task.title for task in tasks] == ["chief 0", "worker 0", "ps 0", "evaluator 0"]
    # the workers are driven by the chief and never end
    assert [task.decides for task in tasks] == [True, False, False, False]
    config = json.loads(tasks[3].variables["TF_CONFIG"])
    assert config["task"] == {"type": "evaluator", "index": 0}
    assert sorted(config["cluster"]) == ["chief", "ps", "worker"]


@pytest.mark.parametrize("workers", range(1, 5))
@pytest.mark.parametrize("servers", range(4))
@pytest.mark.parametrize("nodes", range(1, 5))
def test_every_task_has_a_separate_port(workers, servers, nodes):
    """B7.45."""
    launch = ParameterServer(workers, servers)
    ports = tuple(
        tuple(f"{node}{index}" for index in range(ports_needed(launch, nodes, node))) for node in range(nodes)
    )
    world = World(tuple(Node(f"n{node}", f"h{node}") for node in range(nodes)), 1, ports)
    cluster = json.loads(all_ranks(launch, world)[0].variables["TF_CONFIG"])["cluster"]
    hosts = [host for role_hosts in cluster.values() for host in role_hosts]
    assert len(hosts) == len(set(hosts)) == workers + servers


def test_only_the_first_node_reserves_a_port_for_a_collective():
    assert [ports_needed(TorchDistributed(), 2, node) for node in range(2)] == [1, 0]
    assert ports_needed(Single(), 1, 0) == 0


def test_without_servers_the_run_waits_for_all_workers():
    tasks = all_ranks(ParameterServer(workers=2, servers=0, chief=True), World(NODES, 1, (("1",), ("1",))))
    assert [(task.title, task.decides) for task in tasks] == [("chief 0", True), ("worker 0", True)]
