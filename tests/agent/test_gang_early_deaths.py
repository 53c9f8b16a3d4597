"""Agents that are killed before they have connected to each other: the others know it immediately."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace

from gang_support import SOURCE, Gang, killed_at_the_end, make_gang, running
from runyard.agent.rendezvous.agent_watch import AgentWatch
from runyard.launch.order import Node
from runyard.lifecycle.state import EndReason
from runyard.posix import file_lock
from runyard.spec.launch import TorchDistributed
from runyard.testing.work_orders import wait_until

FOREVER = "import time\nprint('up', flush=True)\ntime.sleep(600)\n"
HOLD_LOCK = (
    "import pathlib, sys, time\nfrom runyard.posix import file_lock\n"
    "file_lock.acquire(pathlib.Path(sys.argv[1]))\ntime.sleep(600)"
)


def wait_for_agent(gang: Gang, node_rank: int) -> None:
    lock = gang.folder.node(node_rank).agent_lock
    wait_until(lambda: file_lock.holder(lock), f"the agent of node {node_rank} to start")


def test_a_node_whose_agent_was_killed_before_the_lead_started_is_lost(tmp_path):
    gang = make_gang(tmp_path, FOREVER, TorchDistributed())
    with killed_at_the_end(gang):
        gang.start_node(1)
        wait_for_agent(gang, 1)
        gang.agents[0].kill()
        gang.agents[0].wait()
        gang.start_node(0)
        end = gang.end()
    assert (end.reason, end.node, end.processes_left) == (EndReason.NODE_LOST, "node-1", 0)
    assert end.message == "node-1: its agent died before it connected"
    assert gang.events()[-1]["event"] == "script_ended"  # not a failed launch, which is not retried


def test_a_node_whose_agent_is_killed_while_the_lead_waits_for_it_is_lost(tmp_path):
    gang = make_gang(tmp_path, FOREVER, TorchDistributed(), nodes=3)
    with killed_at_the_end(gang), socket.create_server(("127.0.0.1", 0)) as silent:
        gang.orders[1] = replace(gang.orders[1], lead=f"127.0.0.1:{silent.getsockname()[1]}")
        for node_rank in range(3):
            gang.start_node(node_rank)
        silent.accept()[0].close()
        wait_for_agent(gang, 1)
        gang.agents[1].kill()
        end = gang.end()  # of all agents
    assert (end.reason, end.node, end.processes_left) == (EndReason.NODE_LOST, "node-1", 0)


def test_the_other_agents_end_if_the_lead_is_killed_before_it_listens(tmp_path):
    gang = make_gang(tmp_path, FOREVER, TorchDistributed(), nodes=3)
    with killed_at_the_end(gang):
        gang.write_order(0)
        gang.start_node(1)
        gang.start_node(2)
        environment = {**os.environ, "PYTHONPATH": SOURCE}
        lock = str(gang.folder.agent_lock)
        with subprocess.Popen([sys.executable, "-S", "-c", HOLD_LOCK, lock], env=environment) as lead:
            for node_rank in range(3):
                wait_for_agent(gang, node_rank)
            assert [agent.poll() for agent in gang.agents] == [None, None]
            lead.send_signal(signal.SIGKILL)
        assert [agent.wait(timeout=30) for agent in gang.agents] == [0, 0]
    assert not gang.folder.lead.exists()
    assert [event["event"] for event in gang.events(1)][-1] == "node_ended"


def test_the_locks_of_an_earlier_attempt_are_not_taken_for_dead_agents(tmp_path):
    gang = make_gang(tmp_path, "print('up')", TorchDistributed())
    with running(gang):
        assert gang.end().reason is EndReason.SUCCEEDED
    gang.orders = [replace(order, attempt=2) for order in gang.orders]
    again = Gang(gang.orders)
    with killed_at_the_end(again):
        again.write_order(0)
        again.start_node(1)
        wait_for_agent(again, 1)
        again.start_node(0)
        assert [agent.wait(timeout=60) for agent in again.agents] == [0, 0]
    ends = [event for event in again.events() if event["event"] == "script_ended"]
    assert [(event["attempt"], event["end"]["reason"]) for event in ends] == [(1, "succeeded"), (2, "succeeded")]


def test_the_death_of_an_agent_on_another_machine_is_read_from_its_folder(tmp_path):
    gang = make_gang(tmp_path, FOREVER, TorchDistributed())
    nodes = (Node("node-0", "10.0.0.1"), Node("node-1", "10.0.0.2"))
    order = replace(gang.orders[0], nodes=nodes, attempt=2)
    lost = gang.folder.node(1).lost
    lost.parent.mkdir(parents=True)
    for content in ("", "[]", "[" * 3000, '{"attempt": 1, "evidence": "old"}', '{"attempt": Infinity}'):
        lost.write_text(content)
        assert AgentWatch(order, gang.folder).death_evidence(1) == ""
    lost.write_text(json.dumps({"attempt": 2, "evidence": "its agent ended with exit code 137"}))
    assert AgentWatch(order, gang.folder).death_evidence(1) == "its agent ended with exit code 137"
    assert AgentWatch(order, gang.folder).death_evidence(0) == ""
