"""The nursery ends with its yard, however that ended, and without a word."""

from __future__ import annotations

import select
import socket
import subprocess
import sys
from pathlib import Path


def test_a_yard_that_goes_with_an_answer_unread_ends_the_nursery_without_a_traceback(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    forkserver = subprocess.Popen(
        [sys.executable, "-m", "runyard.agent.forkserver", str(theirs.fileno())],
        pass_fds=[theirs.fileno()],
        stderr=subprocess.PIPE,
        text=True,
    )
    theirs.close()
    with ours:
        ours.send(str(tmp_path / "no-such-order.json").encode())
        assert select.select([ours], [], [], 60)[0], "the nursery did not answer"
    _, said = forkserver.communicate(timeout=60)
    assert (forkserver.returncode, said) == (0, "")
