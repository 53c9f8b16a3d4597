"""A warm Python that forks agents: a start costs a millisecond or two, not the start of an interpreter.

``python -m runyard.agent.forkserver <fd>``, where the descriptor is one end of a SOCK_SEQPACKET pair. Each packet is
the path of an order; the answer is ``ok <pid>`` when the run has its agent, or ``error <text>``. When the other end
is closed, it ends; the agents that it forked live on.

One agent is always forked ahead, with the child that becomes its script, and waits for its order, so that the forks
are not on a run's way.
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

from runyard.agent import main as hold
from runyard.agent.process.memory import oom_kills
from runyard.agent.process.spawn import CannotStart, Child
from runyard.agent.rendezvous.auth import Claim, nonce, proof
from runyard.launch.order import WorkOrder, parse_order
from runyard.lifecycle.state import End, EndReason
from runyard.spec.json import from_json, to_json

PACKET = 64 * 1024
_REST_S = 0.012


def main(descriptor: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the yard's terminal
    os.set_inheritable(descriptor, False)
    _warm_up()
    gc.collect()
    gc.freeze()  # pages that the collector never touches stay shared with every agent
    with socket.socket(fileno=descriptor) as requests:
        spare = None
        while True:
            # not right after a start: its script needs the processor now more than the next one will
            if spare is None and not select.select([requests], [], [], _REST_S)[0]:
                spare = _fork_spare(requests, is_ahead=True)
            try:
                path = requests.recv(PACKET)
            except ConnectionResetError:  # the yard died with an answer unread
                return
            if not path:
                return
            answer, spare = _take_on(spare, path), None
            if answer is None:  # there was none yet, or somebody killed it while it waited
                answer = _take_on(_fork_spare(requests, is_ahead=False), path)
            try:
                requests.send(answer or b"error the agent died before it held its run, or could not be forked")
            except BrokenPipeError:  # the yard died meanwhile; the next one finds the agent by its lock
                return


def _warm_up() -> None:
    """What is slow the first time: in a new Python to work out, in a new fork to copy the pages of."""
    parse_order(json.dumps(to_json(WorkOrder("", "", ("",), dict(os.environ)))).encode())
    to_json(from_json(End, to_json(End(EndReason.SUCCEEDED))))
    oom_kills()
    socket.getaddrinfo("127.0.0.1", 0, type=socket.SOCK_STREAM)
    proof("", "", Claim("", 1, 0, nonce(), nonce()), 0)
    importlib.import_module("runyard.agent.supervise.node_group")  # here once, for every agent that will need it


def _take_on(spare: Optional[socket.socket], path: bytes) -> Optional[bytes]:
    if spare is None:
        return None
    with spare:
        try:
            spare.send(path)
            return spare.recv(PACKET) or None
        except OSError:
            return None


def _fork_spare(requests: socket.socket, *, is_ahead: bool) -> Optional[socket.socket]:
    """Forked twice: an agent is nobody's child here, so nobody has to reap it, and it outlives all of us."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        between = os.fork()
    except OSError:  # too many processes: tried again with the next order
        ours.close()
        theirs.close()
        return None
    if between == 0:
        try:
            os.setsid()
            if os.fork() == 0:
                requests.close()
                ours.close()
                _be_agent(theirs, is_ahead)
        finally:
            os._exit(0)
    theirs.close()
    os.waitpid(between, 0)
    return ours


def _be_agent(orders: socket.socket, is_ahead: bool) -> NoReturn:
    told = False

    def ready() -> None:
        nonlocal told
        orders.send(b"ok %d" % os.getpid())
        orders.close()
        told = True

    code = 1
    try:
        hold.prepare_signals()
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):  # the yard's own streams may be pipes that somebody waits to see closed
            os.dup2(null, stream)
        if null > 2:  # else it is one of them
            os.close(null)
        child = None
        if is_ahead:
            with suppress(CannotStart):  # then it is tried once more when there is a script to start
                child = Child()
            _warm_up()  # afterwards: what it touches is copied for this process alone
        path = orders.recv(PACKET)
        # nothing: the nursery ended, and this one was never needed
        code = hold.main(os.fsdecode(path), ready, child=child) if path else 0
    except BaseException as error:  # noqa: BLE001  it must not return into the nursery's loop
        if not told:
            orders.send(f"error {type(error).__name__}: {error}".encode("utf-8", "replace")[:PACKET])
    finally:
        os._exit(code)


if __name__ == "__main__":
    main(int(sys.argv[1]))
