"""The fork server ends silently with its yard, however the yard ended."""

from __future__ import annotations

import select
import socket
import subprocess
import sys
from pathlib import Path


def test_an_unread_reply_does_not_cause_a_traceback_when_the_yard_ends(tmp_path: Path) -> None:
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
        assert select.select([ours], [], [], 60)[0], "no reply from the fork server"
    _, stderr = forkserver.communicate(timeout=60)
    assert (forkserver.returncode, stderr) == (0, "")
