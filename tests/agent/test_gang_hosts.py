"""Nodes on separate machines: namespaces with a network between them that can be interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gang_support import Gang, make_gang, running, spread
from netns_support import Host, two_hosts
from runyard.agent.rendezvous.auth import HELLO_BYTES
from runyard.lifecycle.state import EndReason
from runyard.spec.launch import Mpi, TorchDistributed
from runyard.testing.work_orders import wait_until

pytestmark = pytest.mark.xdist_group("mpi")

PEER_TIMEOUT_S = 4.5  # instead of 90
UP = "import os, time\nprint('up', os.getpid(), flush=True)\n"
FOREVER = UP + "time.sleep(600)\n"


@pytest.fixture(scope="module")
def hosts() -> Iterator[tuple[Host, Host]]:
    with two_hosts() as pair:
        yield pair


@pytest.fixture(autouse=True)
def restore_network(hosts: tuple[Host, Host]) -> Iterator[None]:
    yield
    for host in hosts:
        host.reconnect()


def make_pair(tmp_path: Path, hosts: tuple[Host, Host], script: str, *arguments: str, **fields: object) -> Gang:
    fields = {"peer_timeout_s": PEER_TIMEOUT_S, "launch": TorchDistributed(), **fields}
    return spread(make_gang(tmp_path, script, fields.pop("launch"), *arguments, **fields), hosts)


def wait(seconds: float) -> None:
    """For tests of timeouts."""
    until = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() > until)


def ended_ranks(gang: Gang, node_rank: int = 0) -> list[int]:
    return [event["rank"] for event in gang.events(node_rank) if event["event"] == "rank_ended"]


def test_ranks_on_two_hosts_connect_and_end_together(tmp_path, hosts):
    script = (
        "import json, os, socket, time\naddress = (os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT']))\n"
        "if os.environ['RANK'] == '0':\n"
        "    server = socket.socket(); server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
        "    server.bind(address); server.listen(); server.accept()[0].recv(1)\n"
        "else:\n"
        "    while True:\n"
        "        try: socket.create_connection(address).send(b'x'); break\n"
        "        except OSError: time.sleep(0.01)\n"
        "print(json.dumps([os.environ['MASTER_ADDR'], os.environ['GLOO_SOCKET_IFNAME'], os.getcwd()]))"
    )
    gang = make_pair(tmp_path, hosts, script)
    with running(gang):
        end = gang.end()
    assert (end.reason, end.processes_left) == (EndReason.SUCCEEDED, 0)
    for rank, host in enumerate(hosts):
        output = json.loads(gang.log(f"_rank_{rank}"))
        assert output == [hosts[0].address, host.name, str(gang.folder_of(rank).work)]
    assert not gang.folder.driver_log("_rank_1").exists()  # it is on its node
    assert sorted(ended_ranks(gang)) == [0, 1]  # the lead's event log contains all


def test_a_failed_rank_on_another_host_is_reported_with_its_error(tmp_path, hosts):
    script = UP + "if os.environ['RANK'] == '1': raise ValueError('bad lr')\ntime.sleep(600)"
    gang = make_pair(tmp_path, hosts, script)
    with running(gang):
        end = gang.end()
    assert end.message == (
        f"rank 1 on {hosts[1].name}: ValueError: bad lr (exit code 1); the other process was stopped"
    )
    assert end.traceback.endswith("ValueError: bad lr")
    assert (end.processes_left, gang.remaining_pids()) == (0, [])


def test_a_temporary_network_failure_does_no_harm(tmp_path, hosts):
    """Messages that were sent during the failure arrive later, once."""
    gates = [tmp_path / f"gate-{rank}" for rank in range(2)]
    script = UP + "import sys\nwhile not os.path.exists(sys.argv[1] + os.environ['RANK']): time.sleep(0.01)"
    gang = make_pair(tmp_path, hosts, script, str(tmp_path / "gate-"))
    with running(gang):
        gang.wait_for_line("_rank_0", "_rank_1")
        hosts[1].disconnect()
        gates[1].touch()
        wait_until(lambda: ended_ranks(gang, 1) == [1], "the rank to end behind the cut")
        wait(PEER_TIMEOUT_S * 2 / 3)
        assert all(agent.poll() is None for agent in gang.agents)
        assert ended_ranks(gang) == []
        hosts[1].reconnect()
        wait_until(lambda: ended_ranks(gang) == [1], "the lead to receive it")
        gates[0].touch()
        end = gang.end()
    assert (end.reason, end.processes_left) == (EndReason.SUCCEEDED, 0)
    assert sorted(ended_ranks(gang)) == [0, 1]


def test_an_unreachable_host_is_a_lost_node_and_stops_its_processes(tmp_path, hosts):
    gang = make_pair(tmp_path, hosts, FOREVER)
    with running(gang):
        gang.wait_for_line("_rank_0", "_rank_1")
        hosts[1].disconnect()
        end = gang.lead_end()
        assert (end.reason, end.node) == (EndReason.NODE_LOST, hosts[1].name)
        assert end.message.startswith(f"{hosts[1].name}: no message for 4.")
        wait_until(lambda: not gang.remaining_pids(), "the host that was cut off to stop its processes")


def test_the_next_attempt_takes_over_from_an_agent_that_was_cut_off(tmp_path, hosts):
    """The old agent does not know yet that its attempt has ended."""
    script = UP + "if os.environ['RUNYARD_ATTEMPT'] == '1': time.sleep(600)"
    gang = make_pair(tmp_path, hosts, script)
    gang.orders[1] = replace(gang.orders[1], peer_timeout_s=600.0)
    with running(gang):
        gang.wait_for_line("_rank_0", "_rank_1")
        hosts[1].disconnect()
        assert gang.lead_end().reason is EndReason.NODE_LOST
        retried = Gang([replace(order, attempt=2, retry_reason="node lost") for order in gang.orders], hosts=hosts)
        hosts[1].reconnect()
        with running(retried):
            wait_until(lambda: [e for e in retried.events() if (e["event"], e["attempt"]) == ("script_ended", 2)])
            assert retried.end().reason is EndReason.SUCCEEDED
        assert [agent.wait(timeout=10) for agent in gang.agents] == [0, 0]
    assert gang.log("_rank_1").splitlines()[1] == "--- attempt 2: node lost ---"


@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_agent_ends_the_run_on_both_hosts_immediately(tmp_path, hosts, victim):
    gang = make_pair(tmp_path, hosts, FOREVER, peer_timeout_s=90.0)
    with running(gang):
        gang.wait_for_line("_rank_0", "_rank_1")
        gang.agents[victim].kill()
        if victim == 1:
            end = gang.end()
            assert (end.reason, end.node, end.processes_left) == (EndReason.NODE_LOST, hosts[1].name, 0)
        else:
            assert gang.agents[1].wait(timeout=30) == 0
        wait_until(lambda: not gang.remaining_pids(), "all processes to end")


def test_unauthenticated_connections_are_refused_and_do_no_harm(tmp_path, hosts):
    gate = tmp_path / "gate"
    script = UP + f"while not os.path.exists({str(gate)!r}): time.sleep(0.01)"
    gang = make_pair(tmp_path, hosts, script)
    connect = (
        "import json, socket, sys\nhost, _, port = sys.argv[1].rpartition(':')\n"
        "with socket.create_connection((host, int(port))) as line:\n"
        "    line.settimeout(20)\n    line.recv(1000)\n    line.sendall(bytes.fromhex(sys.argv[2]))\n"
        "    try: print(line.recv(1000))\n"
        "    except ConnectionResetError: print(b'')"
    )
    guess = bytes(3) + b"\1" + bytes(HELLO_BYTES - 4)
    texts = (b"GET / HTTP/1.0\r\n\r\n", b'{"node": Infinity}', b"[" * 3000)
    with running(gang):
        gang.wait_for_line("_rank_0", "_rank_1")
        address = json.loads(gang.folder.lead.read_bytes())["place"]
        assert address.startswith(f"{hosts[0].address}:")
        replies = []
        for request in (guess, *(text.ljust(HELLO_BYTES) for text in texts)):
            stranger = hosts[1].command(sys.executable, "-S", "-c", connect, address, request.hex())
            replies.append(subprocess.run(stranger, capture_output=True, text=True, check=True).stdout)
        assert replies == ["b''\n"] * 4
        gate.touch()
        assert gang.end().reason is EndReason.SUCCEEDED
    assert gang.orders[0].secret not in "".join(replies)


def test_an_agent_with_another_secret_is_not_accepted(tmp_path, hosts):
    gang = make_pair(tmp_path, hosts, FOREVER)
    with running(gang):
        gang.wait_for_line("_rank_0", "_rank_1")
        impostor = replace(gang.orders[1], folder=str(tmp_path / "impostor"), secret="a guess")
        other = Gang([gang.orders[0], impostor], hosts=hosts)
        other.start_node(1)
        wait_until(lambda: other.events(1), "the impostor to start")
        wait(1.0)
        other.agents[0].terminate()
        assert other.agents[0].wait(timeout=30) == 0
        assert not (tmp_path / "impostor" / "azureml-logs").exists() or not list(other.folder_of(1).logs.iterdir())
        gang.agents[0].terminate()
        assert gang.end().reason is EndReason.CANCELED


def test_mpi_over_two_hosts_works_without_ssh(tmp_path, hosts, prefixes):
    script = (
        "from mpi4py import MPI\nimport json, os\nworld = MPI.COMM_WORLD\n"
        "big = bytearray(5_000_000)\nworld.Bcast(big, root=1)\n"
        "print(json.dumps([world.allreduce(1), MPI.Get_processor_name(), os.getcwd()]))"
    )
    gang = mpi_pair(tmp_path, hosts, prefixes, script)
    with running(gang):
        end = gang.end()
    assert (end.reason, end.processes_left) == (EndReason.SUCCEEDED, 0), (gang.folder.mpirun_log).read_text()
    for rank in range(4):
        host = hosts[rank // 2]
        assert json.loads(gang.log(f"_rank_{rank}")) == [4, host.name, str(gang.folder_of(rank // 2).work)]


@pytest.mark.parametrize("victim", ["rank", "node"])
def test_a_killed_part_of_mpi_on_another_host_is_named_and_all_processes_end(tmp_path, hosts, prefixes, victim):
    script = "from mpi4py import MPI\nMPI.COMM_WORLD.barrier()\n" + FOREVER
    gang = mpi_pair(tmp_path, hosts, prefixes, script)
    with running(gang):
        gang.wait_for_line(*(f"_rank_{rank}" for rank in range(4)))
        if victim == "rank":
            os.kill(int(gang.log("_rank_3").split()[1]), signal.SIGKILL)
        else:
            gang.agents[1].kill()
        end = gang.end()
        wait_until(lambda: not gang.remaining_pids(), "all processes to end")
    assert end.node == hosts[1].name
    assert end.reason is (EndReason.KILLED if victim == "rank" else EndReason.NODE_LOST)


@pytest.fixture
def prefixes(mpi: dict[str, str], tmp_path: Path) -> list[str]:
    """Paths of the environment, which differ between the hosts."""
    first, second = Path(mpi["mpirun"]).parents[1], tmp_path / "second"
    second.symlink_to(first)
    return [str(first), str(second)]


def mpi_pair(tmp_path: Path, hosts: tuple[Host, Host], prefixes: list[str], script: str) -> Gang:
    gang = make_pair(tmp_path, hosts, script, launch=Mpi(), processes_per_node=2)
    gang.orders = [
        replace(order, argv=(f"{prefix}/bin/python", *order.argv[2:]), mpirun=f"{prefix}/bin/mpirun")
        for order, prefix in zip(gang.orders, prefixes)
    ]
    return gang
