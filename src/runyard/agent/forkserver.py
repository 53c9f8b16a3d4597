"""A warm Python process that forks agents: a start takes a millisecond or two instead of starting an interpreter.

``python -m runyard.agent.forkserver <fd>``, where the descriptor is one end of a SOCK_SEQPACKET pair. Each packet is
the path of a work order, with the descriptor of its private variables if it has any; the reply is ``ok <pid>`` once
the run has its agent, or ``error <text>``. The server ends when the other end is closed; the agents that it forked
continue.

One agent is always forked ahead, together with the process that will execute its script, so that no run waits for a
fork.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from typing import NoReturn, Optional

from runyard.agent import main as agent
from runyard.agent.process.memory import oom_kills
from runyard.agent.process.spawn import SpawnError, StandbyProcess
from runyard.agent.rendezvous.auth import Credentials, LeadHandshake, MemberHandshake
from runyard.launch.order import WorkOrder, parse_order
from runyard.launch.private_variables import read_memory_file
from runyard.lifecycle.state import End, EndReason
from runyard.spec.json import from_json, to_json

PACKET_BYTES = 64 * 1024
_FORK_DELAY_S = 0.012


def main(descriptor: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the yard's terminal
    os.set_inheritable(descriptor, False)
    _warm_up()
    gc.collect()
    gc.freeze()  # pages that the collector never touches stay shared with all agents
    with socket.socket(fileno=descriptor) as requests:
        standby = None
        while True:
            # not immediately after a start: the new script needs the processor more than the next run does
            if standby is None and not select.select([requests], [], [], _FORK_DELAY_S)[0]:
                standby = _fork_agent(requests, is_ahead=True)
            try:
                order_path, private, _, _ = socket.recv_fds(requests, PACKET_BYTES, 1)
            except ConnectionResetError:  # the yard died with an unread reply
                return
            if not order_path:
                return
            reply, standby = _hand_over(standby, order_path, private), None
            if reply is None:  # there was no standby agent yet, or it was killed while it waited
                reply = _hand_over(_fork_agent(requests, is_ahead=False), order_path, private)
            for variables in private:
                os.close(variables)
            try:
                requests.send(reply or b"error the agent could not be forked, or died before it locked its run")
            except BrokenPipeError:  # the yard died; its successor finds the agent by its lock
                return


def _warm_up() -> None:
    """Run code that is slow on first use: in a new interpreter because of imports, in a new fork because of copied
    pages."""
    parse_order(json.dumps(to_json(WorkOrder("", "", ("",), dict(os.environ)))).encode())
    to_json(from_json(End, to_json(End(EndReason.SUCCEEDED))))
    oom_kills()
    socket.getaddrinfo("127.0.0.1", 0, type=socket.SOCK_STREAM)
    credentials = Credentials("", 1, "")
    MemberHandshake(credentials, 0, 0).hello(LeadHandshake(credentials).challenge)
    importlib.import_module("runyard.agent.supervise.node_group")  # once, for all agents that will need it


def _hand_over(standby: Optional[socket.socket], order_path: bytes, private: list[int]) -> Optional[bytes]:
    if standby is None:
        return None
    with standby:
        try:
            socket.send_fds(standby, [order_path], private)
            return standby.recv(PACKET_BYTES) or None
        except OSError:
            return None


def _fork_agent(requests: socket.socket, *, is_ahead: bool) -> Optional[socket.socket]:
    """Fork twice, so that the agent is not a child of this process: it need not be reaped, and survives us."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        intermediate = os.fork()
    except OSError:  # too many processes: retried with the next order
        ours.close()
        theirs.close()
        return None
    if intermediate == 0:
        try:
            os.setsid()
            if os.fork() == 0:
                requests.close()
                ours.close()
                _run_agent(theirs, is_ahead)
        finally:
            os._exit(0)
    theirs.close()
    os.waitpid(intermediate, 0)
    return ours


def _run_agent(orders: socket.socket, is_ahead: bool) -> NoReturn:
    is_ready = False

    def on_ready() -> None:
        nonlocal is_ready
        orders.send(b"ok %d" % os.getpid())
        orders.close()
        is_ready = True

    code = 1
    try:
        agent.block_signals()
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):  # the yard's streams may be pipes whose reader waits for them to be closed
            os.dup2(null, stream)
        if null > 2:  # otherwise it is one of them
            os.close(null)
        standby = None
        if is_ahead:
            with suppress(SpawnError):  # retried when there is a script to start
                standby = StandbyProcess()
            _warm_up()  # after the fork: the pages that it touches are copied for this process only
        order_path, descriptors, _, _ = socket.recv_fds(orders, PACKET_BYTES, 1)
        private = read_memory_file(descriptors[0]) if descriptors else {}
        # empty if the forkserver ended and this agent was never needed
        code = agent.main(os.fsdecode(order_path), on_ready, standby=standby, private=private) if order_path else 0
    except BaseException as error:  # noqa: BLE001  it must not return into the forkserver's loop
        if not is_ready:
            orders.send(f"error {type(error).__name__}: {error}".encode("utf-8", "replace")[:PACKET_BYTES])
    finally:
        os._exit(code)


if __name__ == "__main__":
    main(int(sys.argv[1]))
