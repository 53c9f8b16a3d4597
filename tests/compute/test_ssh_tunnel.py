"""The socket that a courier opens on its host, for scripts that ask the yard."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

COURIER = """
import sys
from pathlib import Path
from runyard.compute.ssh.socket_forward import Pipes, listen
sys.stdin.readline()
def send(head, body): pass
for _ in range(50):
    listen(Path(sys.argv[1]), Pipes(send), send)
print("listens", flush=True)
sys.stdin.readline()
"""


def test_couriers_that_begin_at_the_same_moment_do_not_disturb_each_other(tmp_path: Path) -> None:
    path = tmp_path / "yard.sock"
    command = [sys.executable, "-c", COURIER, str(path)]
    couriers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for courier in couriers:
        assert courier.stdin is not None
        courier.stdin.write("go\n")
        courier.stdin.flush()
    said = [courier.stdout.readline() for courier in couriers if courier.stdout is not None]
    with socket.socket(socket.AF_UNIX) as script:
        script.connect(str(path))
    for courier in couriers:
        courier.communicate("enough\n")
    assert said == ["listens\n", "listens\n"]
    assert path.stat().st_mode & 0o077 == 0
