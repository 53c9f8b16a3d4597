"""Killed processes of a service: no connection is refused, and no request is lost."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from runyard import Webservice, Workspace
from service_support import Client, Load, deploy_service, service_view, supervisor_pid, worker_pids
from support import a_home, eventually, stop_yard

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("services that survive")]

WORKING = """
import time
def init(): pass
def run(text):
    time.sleep(0.003)
    return text
"""
WAITING = """
import os, time
def init(): pass
def run(text):
    open(os.path.join({folder!r}, f'started-{{os.getpid()}}'), 'w').close()
    while not os.path.exists(os.path.join({folder!r}, 'go')): time.sleep(0.005)
    return text
"""


@pytest.fixture(scope="module")
def own_home() -> Iterator[Path]:
    with a_home() as folder:
        yield folder


@pytest.fixture
def home(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A separate yard, because these tests kill it."""
    monkeypatch.setenv("RUNYARD_HOME", str(own_home))
    return own_home


def is_complete(service: Webservice, workers: int, *, without: int) -> bool:
    """True if the supervisor and all workers run, and the killed process is not one of them."""
    supervisor, pids = supervisor_pid(service), worker_pids(service)
    return supervisor is not None and len(pids) == workers and without not in (supervisor, *pids)


def in_progress(folder: Path) -> list[int]:
    return [int(path.name.partition("-")[2]) for path in folder.glob("started-*")]


class FreshConnections(Load):
    """Clients that open a connection for every request."""

    def _send_requests(self) -> None:
        while not self._stop.is_set():
            client = Client(self._service)
            try:
                response = client.request(self._body)
                result = f"{response.status} {response.text}"  # type: ignore[attr-defined]
            except OSError as error:
                result = f"{type(error).__name__}: {error}"
            client.close()
            with self._lock:
                self.results[result] += 1


def test_no_request_is_lost_while_supervisor_workers_and_yard_are_killed(workspace: Workspace, tmp_path: Path) -> None:
    service = deploy_service(workspace, tmp_path, WORKING, workers=2)
    choice = random.Random(14)
    kinds = ["worker", "supervisor", "worker", "yard", "supervisor", "worker", "worker", "supervisor"]
    choice.shuffle(kinds)
    with Load(service, 4, "x") as load, FreshConnections(service, 2, "x") as fresh:
        load.wait_for_more(20)
        for kind in kinds:
            if kind == "yard":
                stop_yard(workspace.home, signal.SIGKILL)
                load.wait_for_more(20)
                continue
            pid = supervisor_pid(service) if kind == "supervisor" else choice.choice(worker_pids(service))
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            load.wait_for_more(20)
            eventually(lambda pid=pid: is_complete(service, 2, without=pid), f"the {kind} is replaced")
    assert load.results.keys() == {'200 "x"'}
    assert fresh.results.keys() == {'200 "x"'}
    service.delete()


def test_a_worker_starts_the_next_supervisor_without_a_yard(workspace: Workspace, tmp_path: Path) -> None:
    service = deploy_service(workspace, tmp_path, WORKING, workers=2)
    workers, supervisor = worker_pids(service), supervisor_pid(service)
    stop_yard(workspace.home, signal.SIGKILL)
    assert supervisor is not None
    os.kill(supervisor, signal.SIGKILL)
    eventually(lambda: is_complete(service, 2, without=supervisor), "there is a new supervisor")
    assert sorted(worker_pids(service)) == sorted(workers)  # they were not restarted
    os.kill(workers[0], signal.SIGKILL)  # the new supervisor replaces a worker that it did not start
    eventually(lambda: is_complete(service, 2, without=workers[0]), "the worker is replaced")
    service.update(workers=3)  # through the next yard
    eventually(lambda: is_complete(service, 3, without=workers[0]), "the change is applied")
    assert Client(service).request("x").status == 200
    service.delete()
    assert not (workspace.home / "services" / service.name).exists()


def test_an_update_continues_idle_connections_in_the_new_version(workspace: Workspace, tmp_path: Path) -> None:
    service = deploy_service(workspace, tmp_path, WORKING)
    address = urlsplit(service.scoring_uri)
    with socket.create_connection((address.hostname, address.port), timeout=60) as client:
        request = b"POST /score HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\n7"
        client.sendall(request)
        assert b"x-runyard-version: 1" in client.recv(65536)
        service.update(models=[])
        service.wait_for_deployment()
        first = json.loads((workspace.home / "services" / service.name / "found.json").read_text())["versions"].get("1")
        eventually(lambda: "1" not in _versions(workspace, service), f"the workers of version 1 have ended: {first}")
        client.sendall(request)
        response = client.recv(65536)
    assert b"x-runyard-version: 2" in response
    assert response.endswith(b'"7"')
    service.delete()


def _versions(workspace: Workspace, service: Webservice) -> list[str]:
    return list(json.loads((workspace.home / "services" / service.name / "found.json").read_text())["versions"])


def test_a_request_in_progress_is_repeated_by_another_worker(workspace: Workspace, tmp_path: Path) -> None:
    code = WAITING.format(folder=str(tmp_path))
    service = deploy_service(workspace, tmp_path, code, workers=2)
    responses: list[object] = []
    thread = threading.Thread(target=lambda: responses.append(Client(service).request("once")), daemon=True)
    thread.start()
    eventually(lambda: in_progress(tmp_path), "the request is in progress")
    (first,) = in_progress(tmp_path)
    os.kill(first, signal.SIGKILL)
    eventually(lambda: len(in_progress(tmp_path)) == 2, "another worker has the request")
    (tmp_path / "go").touch()
    thread.join(60)
    assert [(response.status, response.text) for response in responses] == [(200, '"once"')]  # type: ignore[attr-defined]
    service.delete()


def test_a_request_is_not_repeated_without_retries(workspace: Workspace, tmp_path: Path) -> None:
    code = WAITING.format(folder=str(tmp_path))
    service = deploy_service(workspace, tmp_path, code, workers=2, limits={"retries": 0})
    responses: list[object] = []
    thread = threading.Thread(target=lambda: responses.append(Client(service).request("once")), daemon=True)
    thread.start()
    eventually(lambda: in_progress(tmp_path), "the request is in progress")
    os.kill(in_progress(tmp_path)[0], signal.SIGKILL)
    thread.join(60)
    assert [response.status for response in responses] == [502]  # type: ignore[attr-defined]
    assert len(in_progress(tmp_path)) == 1
    service.delete()


def test_a_request_that_ends_every_worker_is_given_up(workspace: Workspace, tmp_path: Path) -> None:
    code = "import os\ndef init(): pass\ndef run(text):\n    if text == 'end': os._exit(9)\n    return text\n"
    service = deploy_service(workspace, tmp_path, code, workers=2)
    client = Client(service)
    assert client.request("x").status == 200
    response = client.request("end")
    assert response.status == 502
    assert "the worker ended while it processed this request" in response.text
    assert client.request("x").status == 200
    eventually(lambda: len(worker_pids(service)) == 2, "the workers are replaced")
    service.delete()


def test_a_large_upload_survives_its_worker(workspace: Workspace, tmp_path: Path) -> None:
    service = deploy_service(workspace, tmp_path, "def init(): pass\ndef run(text): return len(text)\n", workers=2)
    size = 4_000_000
    address = urlsplit(service.scoring_uri)
    with socket.create_connection((address.hostname, address.port), timeout=60) as client:
        client.sendall(b"POST /score HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % size)
        client.sendall(b"7" * (size // 2))
        for pid in worker_pids(service):  # one of them has the connection
            os.kill(pid, signal.SIGKILL)
            eventually(lambda pid=pid: is_complete(service, 2, without=pid), "the worker is replaced")
        client.sendall(b"7" * (size - size // 2))
        response = client.recv(65536)
    assert response.startswith(b"HTTP/1.1 200 OK\r\n")
    assert response.endswith(str(size).encode())
    assert service_view(service)["versions"][0]["workers"]
    service.delete()
