"""A warm Python that forks agents: a start costs a millisecond or two, not the start of an interpreter.

``python -m runyard.agent.nursery <fd>``, where the descriptor is one end of a SOCK_SEQPACKET pair. Each packet is
the path of an order; the answer is ``ok <pid>`` when the run has its agent, or ``error <text>``. When the other end
is closed, it ends; the agents that it forked live on.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
from typing import NoReturn

from runyard.agent import hold

PACKET = 64 * 1024


def main(descriptor: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the yard's terminal
    os.set_inheritable(descriptor, False)
    with socket.socket(fileno=descriptor) as requests:
        gc.freeze()  # pages that the collector never touches stay shared with every agent
        while True:
            path = requests.recv(PACKET)
            if not path:
                return
            answer = _fork_agent(os.fsdecode(path), requests)
            try:
                requests.send(answer.encode("utf-8", "replace")[:PACKET])
            except BrokenPipeError:  # the yard died meanwhile; the next one finds the agent by its lock
                return


def _fork_agent(order_path: str, requests: socket.socket) -> str:
    word_read, word_write = os.pipe()
    try:
        between = os.fork()
    except OSError as error:  # too many processes: this start fails, the next one may not
        os.close(word_read)
        os.close(word_write)
        return f"error cannot fork: {error.strerror}"
    if between == 0:
        # Forked twice: the agent is nobody's child here, so nobody has to reap it and it outlives all of us.
        try:
            os.setsid()
            if os.fork() == 0:
                os.close(word_read)
                requests.close()
                _be_agent(order_path, word_write)
        finally:
            os._exit(0)
    os.close(word_write)
    os.waitpid(between, 0)
    with os.fdopen(word_read, "rb") as word:
        return word.read().decode("utf-8", "replace") or "error the agent died before it held its run"


def _be_agent(order_path: str, word: int) -> NoReturn:
    told = False

    def ready() -> None:
        nonlocal told
        os.write(word, f"ok {os.getpid()}".encode())
        os.close(word)
        told = True

    code = 1
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):  # the yard's own streams may be pipes that somebody waits to see closed
            os.dup2(null, stream)
        os.close(null)
        code = hold.main(order_path, ready)
    except BaseException as error:  # noqa: BLE001  it must not return into the nursery's loop
        if not told:
            os.write(word, f"error {type(error).__name__}: {error}".encode("utf-8", "replace"))
    finally:
        os._exit(code)


if __name__ == "__main__":
    main(int(sys.argv[1]))
