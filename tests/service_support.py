"""Services for tests: a tiny model, a scoring script in the Python of the tests, and clients that count what fails."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from runyard import Environment, InferenceConfig, LocalWebservice, Model, Webservice, Workspace

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


def a_name(what: str = "svc") -> str:
    return f"{what}-{os.getpid()}-{next(_numbers)}"


def this_python() -> Environment:
    environment = Environment("this-python")
    environment.python.user_managed_dependencies = True
    return environment


def a_factor(workspace: Workspace, folder: Path, factor: int, name: str) -> Model:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "factor.json").write_text(json.dumps(factor))
    return Model.register(workspace, str(folder / "factor.json"), name)


def a_script(folder: Path, code: str, name: str = "score.py") -> InferenceConfig:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(code, encoding="utf-8")
    return InferenceConfig(name, source_directory=str(folder), environment=this_python())


def deployed(
    workspace: Workspace, folder: Path, code: str, models: list[Model] | None = None, **how: object
) -> Webservice:
    config = LocalWebservice.deploy_configuration(**how)
    service = Model.deploy(workspace, a_name(), models or [], a_script(folder / "code", code), config)
    service.wait_for_deployment()
    return service


def service_view(service: Webservice) -> dict[str, Any]:
    """The service as the HTTP API returns it."""
    view: dict[str, Any] = service.workspace.connection.get(f"/api/services/{service.name}")
    return view


class Client:
    """One connection, kept: as programs that call a service do it."""

    def __init__(self, service: Webservice) -> None:
        where = urlsplit(service.scoring_uri)
        self._connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=30)

    def ask(
        self, body: str | bytes = "", path: str = "/score", method: str = "POST", **headers: str
    ) -> http.client.HTTPResponse:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request(method, path, body or None, sent)
        answer = self._connection.getresponse()
        answer.text = answer.read().decode()  # type: ignore[attr-defined]
        return answer

    def close(self) -> None:
        self._connection.close()

    def __del__(self) -> None:
        self.close()


class Load:
    """Clients that ask all the time, until the end of the block; ``seen`` counts what they got."""

    def __init__(self, service: Webservice, clients: int, body: str) -> None:
        self._service, self._body = service, body
        self._ends = threading.Event()
        self.seen: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._ask, daemon=True) for _ in range(clients)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join(60)

    def until_more(self, count: int = 50, within_s: float = 60.0) -> None:
        """Returns when so many more were answered."""
        begun = sum(self.seen.values())
        deadline = time.monotonic() + within_s
        while sum(self.seen.values()) < begun + count:
            assert time.monotonic() < deadline, f"only {dict(self.seen)}"
            time.sleep(0.005)

    @property
    def failures(self) -> dict[str, int]:
        return {what: count for what, count in self.seen.items() if not what.startswith("200 ")}

    def _ask(self) -> None:
        client = Client(self._service)
        while not self._ends.is_set():
            try:
                answer = client.ask(self._body)
                what = f"{answer.status} {answer.text}"  # type: ignore[attr-defined]
            except (OSError, http.client.HTTPException) as error:
                what = f"{type(error).__name__}: {error}"
                client.close()
                client = Client(self._service)
            with self._lock:
                self.seen[what] += 1
        client.close()
