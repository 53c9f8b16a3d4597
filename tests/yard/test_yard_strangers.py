"""Another user of the machine connects to the yard's TCP port without a token."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from runyard import Experiment, Workspace
from runyard.client.connection import Connection
from support import eventually, logged_errors, with_this_python, yard_pid

pytestmark = pytest.mark.real

CONNECTIONS = 1200
ATTACK = """
import os, resource, socket, sys
port, count = int(sys.argv[1]), int(sys.argv[2])
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard != -1 else count + 100, hard))
"".encode("idna")  # loaded while this user can still read it
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
connections = []
for number in range(count):
    connection = socket.create_connection(("127.0.0.1", port))
    if number % 3 == 0:
        connection.sendall(b"GET /api/runs HTTP/1.1\\r\\nHost: localhost\\r\\nX-Slow: ")
    connections.append(connection)
print("connected", flush=True)
sent = 0
with socket.create_connection(("127.0.0.1", port)) as connection:
    connection.settimeout(20)
    try:
        connection.sendall(b"GET / HTTP/1.1\\r\\nHost: localhost\\r\\nX-Large: ")
        while sent < 63_000_000:
            sent += connection.send(b"x" * 100_000)
    except OSError:
        pass
print(sent, flush=True)
for number in range(500):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"\\x00 is not HTTP\\r\\n\\r\\n")
print("done", flush=True)
sys.stdin.read()
"""


@contextmanager
def an_attack(port: int) -> Iterator[Callable[[], str]]:
    """A program of another user, if the tests may start one."""
    words = [sys.executable, "-c", ATTACK, str(port), str(CONNECTIONS)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as attack:
        assert attack.stdout is not None
        yield attack.stdout.readline
        attack.kill()


def memory_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def fetch(address: dict[str, Any], path: str) -> Any:
    request = urllib.request.Request(f"{address['url']}{path}", headers={"Authorization": f"Bearer {address['token']}"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=20) as response:
        return json.loads(response.read())


def test_connections_without_a_token_do_not_lock_the_owner_out(
    home: Path, experiment: Experiment, workspace: Workspace, project
) -> None:
    address = workspace.connection.post("/api/studio", {})
    pid = yard_pid(home)
    assert pid is not None
    experiment.submit(with_this_python(project(train="pass"))).wait_for_completion()  # loads what a run needs
    memory_before = memory_mb(pid)
    log_before = (home / "yard.log").stat().st_size
    with an_attack(address["port"]) as next_line:
        assert next_line() == "connected\n"
        assert Connection(home).get("/api/health")["pid"] == pid
        assert fetch(address, "api/health")["pid"] == pid
        assert len(list(Path(f"/proc/{pid}/fd").iterdir())) < 500
        sent_bytes = int(next_line())
        assert sent_bytes < 63_000_000
        assert next_line() == "done\n"
        result = subprocess.run([sys.executable, "-m", "runyard", "runs"], capture_output=True, text=True, timeout=60)
        assert result.returncode == 0, result.stderr
        run = experiment.submit(with_this_python(project(train="print('on')")))
        assert run.wait_for_completion()["status"] == "Completed"
        assert fetch(address, "api/health")["pid"] == pid
        assert memory_mb(pid) - memory_before < 60
        assert (home / "yard.log").stat().st_size - log_before < 50_000
    assert logged_errors(home) == []


def test_a_head_that_never_ends_is_not_waited_for(home: Path, workspace: Workspace) -> None:
    address = workspace.connection.post("/api/studio", {})
    with socket.create_connection(("127.0.0.1", address["port"])) as idle:
        with socket.create_connection(("127.0.0.1", address["port"])) as slow:
            slow.settimeout(0.2)
            answer = b""

            def is_closed() -> bool:
                """Send one more byte of the head."""
                nonlocal answer
                try:
                    slow.sendall(b"G")
                    data = slow.recv(1000)
                except TimeoutError:
                    return False
                except OSError:
                    return True
                answer += data
                return not data

            eventually(is_closed, "the connection is closed")
            assert answer[:12] in (b"HTTP/1.1 408", b"HTTP/1.1 400")
        idle.settimeout(20)
        assert idle.recv(1000).startswith(b"HTTP/1.1 408")
