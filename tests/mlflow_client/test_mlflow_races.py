"""Processes that set the same experiment with the stock MLflow client at the same moment, as the ranks of a run do."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack

import mlflow
import pytest
from mlflow import MlflowClient

pytestmark = pytest.mark.real

PROCESSES, ROUNDS = 3, 5
CLIENT = """
import logging, sys
import mlflow
logging.getLogger("mlflow").setLevel(logging.ERROR)
print("ready", flush=True)
for name in sys.stdin:
    print(mlflow.set_experiment(name.rstrip()).experiment_id, flush=True)
"""


def test_processes_that_set_one_experiment_at_once_get_the_same_id(tracking: str, client: MlflowClient) -> None:
    variables = {**os.environ, "MLFLOW_TRACKING_URI": mlflow.get_tracking_uri()}
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", CLIENT],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    bufsize=1,
                    env=variables,
                )
            )
            for _ in range(PROCESSES)
        ]
        for process in processes:
            stack.callback(process.kill)
        assert [answer(process) for process in processes] == ["ready"] * PROCESSES
        for number in range(ROUNDS):
            name = f"shared by ranks {os.getpid()} {number}"
            for process in processes:
                assert process.stdin is not None
                process.stdin.write(f"{name}\n")
            ids = {answer(process) for process in processes}
            assert len(ids) == 1
            experiments = [experiment for experiment in client.search_experiments() if experiment.name == name]
            assert [experiment.experiment_id for experiment in experiments] == list(ids)


def answer(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()
