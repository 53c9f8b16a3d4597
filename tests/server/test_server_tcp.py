"""The TCP listener: opened on request, kept across restarts, closed; and `runyard server`."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runyard.client.connection import Connection
from runyard.errors import UserErrorException
from support import a_home, eventually, stop_yard, yard_pid


@pytest.fixture
def home() -> Iterator[Path]:
    """A separate yard, because these tests stop it."""
    with a_home() as folder:
        yield folder


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free_port: int = probe.getsockname()[1]
        return free_port


def fetch(url: str, **headers: str) -> Any:
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=20) as response:
        return response.read()


def health(address: dict[str, Any]) -> Any:
    return json.loads(fetch(f"{address['url']}api/health", Authorization=f"Bearer {address['token']}"))


def command(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "runyard", *words],
        env={**os.environ, "RUNYARD_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.real
def test_the_studio_command_prints_a_url_that_signs_in(home: Path, port: int) -> None:
    result = command(home, "studio", "--no-open", "--port", str(port))
    url = result.stdout.strip()
    assert url.startswith(f"http://127.0.0.1:{port}/?token="), result.stderr
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor())
    with opener.open(url, timeout=20) as page:
        assert page.url == f"http://127.0.0.1:{port}/"
        assert b"<html" in page.read()
        assert "script-src 'self'" in page.headers["Content-Security-Policy"]
    with opener.open(f"http://127.0.0.1:{port}/api/health", timeout=20) as response:
        assert json.loads(response.read())["studio"] == f"http://127.0.0.1:{port}/"
    with pytest.raises(urllib.error.HTTPError, match="401"):
        fetch(f"http://127.0.0.1:{port}/api/health")
    assert "no longer listens" in command(home, "studio", "--close").stderr
    with pytest.raises(urllib.error.URLError):
        fetch(f"http://127.0.0.1:{port}/")


@pytest.mark.real
def test_the_next_yard_uses_the_same_address_and_token(home: Path, port: int) -> None:
    connection = Connection(home)
    address = connection.post("/api/studio", {"port": port})
    assert connection.post("/api/studio", {})["port"] == port
    first = health(address)["pid"]
    stop_yard(home, signal.SIGKILL)
    restarted = Connection(home).get("/api/studio")
    assert (restarted["url"], restarted["token"]) == (address["url"], address["token"])
    assert health(address)["pid"] != first


@pytest.mark.real
def test_a_used_port_is_an_error_and_the_default_finds_a_free_one(home: Path, port: int) -> None:
    connection = Connection(home)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        with pytest.raises(UserErrorException, match=f"cannot listen on 127.0.0.1:{port}"):
            connection.post("/api/studio", {"port": port})
        (home / "studio.json").write_text(json.dumps({"host": "127.0.0.1", "port": port, "names": []}))
        assert connection.post("/api/studio", {})["port"] != port


@pytest.mark.real
def test_a_stream_over_tcp_ends_with_the_yard(home: Path, port: int) -> None:
    address = Connection(home).post("/api/studio", {"port": port})
    request = urllib.request.Request(
        f"{address['url']}api/live", headers={"Authorization": f"Bearer {address['token']}"}
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=20) as stream:
        assert stream.readline().startswith(b"id:")
        stop_yard(home)
        stream.read()


@pytest.mark.real
def test_an_open_event_stream_prevents_the_idle_exit(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNYARD_IDLE_S", "0.3")
    events = Connection(home).events("/api/live")
    assert next(events)[0] == "hello"
    pid = yard_pid(home)
    threading.Event().wait(1.0)  # three times its idle time
    assert yard_pid(home) == pid
    events.close()
    eventually(lambda: yard_pid(home) is None, "the yard exits")


@pytest.mark.real
def test_a_server_replaces_the_background_yard_and_ignores_the_idle_time(home: Path, port: int) -> None:
    before = Connection(home).get("/api/health")["pid"]
    words = [sys.executable, "-m", "runyard", "server", "--port", str(port), "--name", "lab.example"]
    variables = {**os.environ, "RUNYARD_HOME": str(home), "RUNYARD_IDLE_S": "0.1"}
    server = subprocess.Popen(words, env=variables, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        url = next(word for line in server.stderr for word in line.split() if "?token=" in word)
        address = {"url": f"http://127.0.0.1:{port}/", "token": url.partition("=")[2]}
        status = health(address)
        assert status["stays"]
        assert status["pid"] != before
        assert b"<html" in fetch(address["url"], Host=f"lab.example:{port}")
        with pytest.raises(urllib.error.HTTPError, match="421"):
            fetch(address["url"], Host=f"evil.example:{port}")
        second = command(home, "server", "--port", str(port))
        assert second.returncode == 1
        assert "already" in second.stderr
        assert health(address)["pid"] == status["pid"]
    finally:
        server.terminate()
        server.communicate(timeout=30)
    assert server.returncode == 0
    eventually(lambda: yard_pid(home) is None, "the server's yard ends")


@pytest.mark.real
def test_a_server_that_cannot_listen_is_an_error(home: Path, port: int) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        result = command(home, "server", "--port", str(port))
    assert result.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in result.stderr
