"""A service under load with kept connections; every request must be answered."""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from runyard import Environment, InferenceConfig, LocalWebservice, Model, Workspace
from runyard.posix import file_lock
from runyard.spec.service import ServiceFolder
from soak.samples import wait_until

_SCORE = "import time\ndef init(): pass\ndef run(text):\n    time.sleep(0.002)\n    return text\n"
_CLIENTS = 3
_WORKERS = 2
_PAUSE_S = 0.005


class LoadedService:
    def __init__(self, workspace: Workspace, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "score.py").write_text(_SCORE, encoding="utf-8")
        environment = Environment("this-python")
        environment.python.user_managed_dependencies = True
        config = InferenceConfig("score.py", source_directory=str(folder), environment=environment)
        configuration = LocalWebservice.deploy_configuration(workers=_WORKERS)
        self._service = Model.deploy(workspace, "soak", [], config, configuration)
        self._service.wait_for_deployment()
        self._files = ServiceFolder(workspace.home / "services" / "soak")
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self.results: Counter[str] = Counter()
        self._threads = [threading.Thread(target=self._send_requests, daemon=True) for _ in range(_CLIENTS)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()
        self._service.delete()

    @property
    def failures(self) -> dict[str, int]:
        return {result: count for result, count in self.results.items() if result != "200"}

    def supervisor(self) -> int | None:
        return file_lock.holder(self._files.lock) or None

    def kill_worker(self, choice: random.Random) -> bool:
        pids = self._worker_pids()
        if not pids:
            return False
        return self._kill(choice.choice(pids))

    def kill_supervisor(self) -> bool:
        pid = self.supervisor()
        return pid is not None and self._kill(pid)

    def is_complete(self) -> bool:
        return len(self._worker_pids()) == _WORKERS

    def _kill(self, pid: int) -> bool:
        """Kill a process and wait for its replacement: two failures at the same time are more than is promised."""
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return wait_until(
            lambda: self.is_complete() and self.supervisor() != pid and pid not in self._worker_pids(), 60.0
        )

    def _worker_pids(self) -> list[int]:
        try:
            status = json.loads(self._files.status.read_bytes())
        except (OSError, ValueError):
            return []
        if status["pid"] != self.supervisor():
            return []
        workers = [worker for version in status["versions"].values() for worker in version["workers"]]
        return [worker["pid"] for worker in workers if worker["state"] == "serving" and worker["pid"]]

    def _send_requests(self) -> None:
        address = urlsplit(self._service.scoring_uri)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
        while not self._stopped.is_set():
            try:
                connection.request("POST", "/score", "x")
                response = connection.getresponse()
                response.read()
                result = str(response.status)
            except (OSError, http.client.HTTPException) as error:
                result = f"{type(error).__name__}: {error}"
                connection.close()
            with self._lock:
                self.results[result] += 1
            time.sleep(_PAUSE_S)
        connection.close()
