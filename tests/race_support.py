"""Helpers for races: clients of one yard that a barrier releases at the same moment."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runyard.client.connection import Connection
from runyard.errors import RunyardException, YardUnavailable

CLIENTS, ROUNDS = 8, 3
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Client:
    """One of the clients of a race."""

    number: int
    connection: Connection
    code: Code
    folder: Path  # one for all clients


@dataclass(frozen=True)
class Code:
    """A snapshot with a script to train and one to score, and a specification that runs it."""

    spec: dict[str, Any]
    snapshot_id: str
    model: str

    def run(self, run_id: str, *arguments: str) -> dict[str, Any]:
        spec = {**self.spec, "arguments": list(arguments)}
        return {"run_id": run_id, "experiment": "races", "spec": spec, "snapshot_id": self.snapshot_id}

    def sweep(self, run_id: str, seed: int) -> dict[str, Any]:
        spec = {
            "sampling": {"name": "Random", "space": {"x": ["uniform", [0, 1]]}, "seed": seed},
            "primary_metric": "score",
            "goal": "maximize",
            "max_total_runs": 1,
            "max_concurrent_runs": 1,
            "child": self.spec,
        }
        return {"run_id": run_id, "experiment": "races", "spec": spec, "snapshot_id": self.snapshot_id}

    @property
    def version(self) -> dict[str, Any]:
        environment = self.spec["environment"]
        return {"entry_script": "score.py", "snapshot_id": self.snapshot_id, "environment": environment}


@dataclass(frozen=True)
class Outcome:
    results: list[Any]  # in the order of the clients; None for a refused one
    errors: list[RunyardException]

    @property
    def winners(self) -> list[int]:
        return [number for number, result in enumerate(self.results) if result is not None]


class Race:
    def __init__(self, home: Path, code: Code, folder: Path) -> None:
        self.connection = Connection(home)
        self.code = code
        self._home, self._folder = home, folder

    def run(self, action: Callable[..., Any], *arguments: Any) -> Outcome:
        """Call ``action`` with a client and the arguments, for all clients at the same moment."""
        barrier = threading.Barrier(CLIENTS)

        def client(number: int) -> tuple[Any, RunyardException | None]:
            connection = Connection(self._home)
            connection.get("/api/health")  # it is connected when the race begins
            barrier.wait(timeout=120)
            try:
                return action(Client(number, connection, self.code, self._folder), *arguments), None
            except RunyardException as error:
                return None, error

        with ThreadPoolExecutor(CLIENTS) as pool:
            answers = list(pool.map(client, range(CLIENTS)))
        return Outcome([result for result, _ in answers], [error for _, error in answers if error is not None])


def new_name() -> str:
    return f"race-{os.getpid()}-{next(_numbers)}"


def with_space(name: str) -> str:
    """A name that MLflow accepts and the yard does not: its experiment has another name and this title."""
    return name.replace("-", " ")


def mlflow(connection: Connection, path: str, **fields: Any) -> Any:
    return connection.post(f"/api/2.0/mlflow/{path}", fields)


def is_conflict(error: RunyardException) -> bool:
    """True if the yard refused the request because of the name. Errors of MLflow's API have other codes than ours."""
    return "RESOURCE_ALREADY_EXISTS" in error.message or not isinstance(error, YardUnavailable)


def names(views: list[dict[str, Any]], name: str, key: str = "name") -> list[str]:
    return [view[key] for view in views if view[key] == name]
