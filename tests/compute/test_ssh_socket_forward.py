"""The socket that a remote agent opens on its host for scripts that call the yard."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

REMOTE_AGENT = """
import sys
from pathlib import Path
from runyard.compute.ssh.socket_forward import ForwardedConnections, listen
sys.stdin.readline()
def send(head, body): pass
for _ in range(50):
    listen(Path(sys.argv[1]), ForwardedConnections(send), send)
print("listening", flush=True)
sys.stdin.readline()
"""


def test_remote_agents_that_start_at_the_same_time_do_not_interfere(tmp_path: Path) -> None:
    path = tmp_path / "yard.sock"
    command = [sys.executable, "-c", REMOTE_AGENT, str(path)]
    agents = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for agent in agents:
        assert agent.stdin is not None
        agent.stdin.write("go\n")
        agent.stdin.flush()
    lines = [agent.stdout.readline() for agent in agents if agent.stdout is not None]
    with socket.socket(socket.AF_UNIX) as script:
        script.connect(str(path))
    for agent in agents:
        agent.communicate("stop\n")
    assert lines == ["listening\n", "listening\n"]
    assert path.stat().st_mode & 0o077 == 0
