"""Helpers for service tests: a small model, scoring scripts in the current Python, and clients that count failures."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from runyard import Environment, InferenceConfig, LocalWebservice, Model, Webservice, Workspace
from support import eventually, is_alive, lock_holder

_numbers = itertools.count(1)

TIMES = """
import json
from azureml.core.model import Model

def init():
    global factor
    with open(Model.get_model_path('MODEL')) as file:
        factor = json.load(file)

def run(text):
    return [factor * number for number in json.loads(text)['data']]
"""


def unique_name(prefix: str = "svc") -> str:
    return f"{prefix}-{os.getpid()}-{next(_numbers)}"


def current_python() -> Environment:
    environment = Environment("this-python")
    environment.python.user_managed_dependencies = True
    return environment


def register_factor(workspace: Workspace, folder: Path, factor: int, name: str) -> Model:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "factor.json").write_text(json.dumps(factor))
    return Model.register(workspace, str(folder / "factor.json"), name)


def scoring_config(folder: Path, code: str, name: str = "score.py") -> InferenceConfig:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(code, encoding="utf-8")
    return InferenceConfig(name, source_directory=str(folder), environment=current_python())


def deploy_service(
    workspace: Workspace, folder: Path, code: str, models: list[Model] | None = None, **options: object
) -> Webservice:
    config = LocalWebservice.deploy_configuration(**options)
    service = Model.deploy(workspace, unique_name(), models or [], scoring_config(folder / "code", code), config)
    service.wait_for_deployment()
    return service


def service_view(service: Webservice) -> dict[str, Any]:
    """The service as the HTTP API returns it."""
    view: dict[str, Any] = service.workspace.connection.get(f"/api/services/{service.name}")
    return view


def supervisor_pid(service: Webservice) -> int | None:
    return lock_holder(service.workspace.home / "services" / service.name / "keeper.lock")


def worker_pids(service: Webservice) -> list[int]:
    """Process ids of the workers that serve, according to the supervisor; empty while it is being replaced."""
    status = json.loads((service.workspace.home / "services" / service.name / "found.json").read_text())
    if status["pid"] != supervisor_pid(service):
        return []
    workers = [worker for version in status["versions"].values() for worker in version["workers"]]
    return [worker["pid"] for worker in workers if worker["state"] == "serving" and is_alive(worker["pid"])]


def kill_all(service: Webservice) -> None:
    """Kill every process of a service at the same time, as a power failure does."""
    supervisor = supervisor_pid(service)
    pids = [*worker_pids(service), *([supervisor] if supervisor else [])]
    for number in (signal.SIGSTOP, signal.SIGKILL):  # a worker that saw the others die would start them again
        for pid in pids:
            os.kill(pid, number)
    for pid in pids:
        eventually(lambda pid=pid: not is_alive(pid), "the process has ended")


class Client:
    """A persistent connection, as used by programs that call a service."""

    def __init__(self, service: Webservice) -> None:
        address = urlsplit(service.scoring_uri)
        self._connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)

    def request(
        self, body: str | bytes = "", path: str = "/score", method: str = "POST", **headers: str
    ) -> http.client.HTTPResponse:
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request(method, path, body or None, fields)
        response = self._connection.getresponse()
        response.text = response.read().decode()  # type: ignore[attr-defined]
        return response

    def close(self) -> None:
        self._connection.close()

    def __del__(self) -> None:
        self.close()


class Load:
    """Clients that send requests until the end of the block; ``results`` counts their responses."""

    def __init__(self, service: Webservice, clients: int, body: str) -> None:
        self._service, self._body = service, body
        self._stop = threading.Event()
        self.results: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._send_requests, daemon=True) for _ in range(clients)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)

    def wait_for_more(self, count: int = 50, within_s: float = 60.0) -> None:
        """Wait until ``count`` more requests have been answered."""
        before = sum(self.results.values())
        deadline = time.monotonic() + within_s
        while sum(self.results.values()) < before + count:
            assert time.monotonic() < deadline, f"only {dict(self.results)}"
            time.sleep(0.005)

    @property
    def failures(self) -> dict[str, int]:
        return {result: count for result, count in self.results.items() if not result.startswith("200 ")}

    def _send_requests(self) -> None:
        client = Client(self._service)
        while not self._stop.is_set():
            try:
                response = client.request(self._body)
                result = f"{response.status} {response.text}"  # type: ignore[attr-defined]
            except (OSError, http.client.HTTPException) as error:
                result = f"{type(error).__name__}: {error}"
                client.close()
                client = Client(self._service)
            with self._lock:
                self.results[result] += 1
        client.close()
