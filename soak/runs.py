"""Runs of every kind, each with the end that it must have."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from runyard import (
    AmlCompute,
    ComputeTarget,
    Experiment,
    PyTorchConfiguration,
    Run,
    ScriptRunConfig,
    Workspace,
)
from runyard.hyperdrive import HyperDriveConfig, PrimaryMetricGoal, RandomParameterSampling, choice
from soak.samples import wait_until

_END_S = 180.0
POINTS = 50
_SCRIPTS = {
    "train.py": f"""
import os, sys, time
from runyard import Run
run = Run.get_context()
for step in range({POINTS}):
    run.log('loss', 1 / (step + 1))
    print('step', step)
    time.sleep(0.01)
open('outputs/model.txt', 'w').write('x' * 10000)
""",
    "fail.py": "raise ValueError('bad learning rate')\n",
    "wait.py": "import time\nprint('waiting', flush=True)\ntime.sleep(600)\n",
    "rank.py": """
import os
from runyard import Run
for step in range(10):
    Run.get_context().log('rank ' + os.environ['RANK'], step)
""",
    "sweep.py": """
import argparse
from runyard import Run
parser = argparse.ArgumentParser()
parser.add_argument('--x', type=float)
x = parser.parse_args().x
for step in range(10):
    Run.get_context().log('score', x * step)
""",
}


class Runs:
    """Submits runs in several threads until it is stopped; ``problems`` lists those that ended wrongly."""

    def __init__(self, workspace: Workspace, folder: Path, seed: int) -> None:
        self._workspace, self._folder, self._random = workspace, folder, random.Random(seed)
        self.ends: Counter[str] = Counter()
        self.problems: list[str] = []
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in _SCRIPTS.items():
            (folder / name).write_text(text, encoding="utf-8")
        configuration = AmlCompute.provisioning_configuration(max_nodes=2)
        self._cluster = ComputeTarget.create(workspace, "soak-cluster", configuration)
        kinds: list[Callable[[], str]] = [
            self._completed,
            self._completed,
            self._failed,
            self._canceled,
            self._killed_script,
            self._killed_agent,
            self._gang,
            self._sweep,
        ]
        self._threads = [
            threading.Thread(target=self._submit, args=(kinds,), name=f"runs-{n}", daemon=True) for n in range(2)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def _submit(self, kinds: list[Callable[[], str]]) -> None:
        while not self._stopped.is_set():
            with self._lock:
                kind = self._random.choice(kinds)
            name = kind.__name__.strip("_")
            try:
                problem = kind()
            except Exception as error:  # noqa: BLE001  the edge of the thread: every error is a finding
                problem = f"{type(error).__name__}: {error}"
            with self._lock:
                self.ends[name] += 1
                if problem:
                    self.problems.append(f"{time.strftime('%H:%M:%S')} {name}: {problem}")

    def _config(self, script: str) -> ScriptRunConfig:
        config = ScriptRunConfig(self._folder, script=script)
        config.run_config.environment.python.user_managed_dependencies = True
        return config

    def _start(self, script: str) -> Run:
        return Experiment(self._workspace, "soak").submit(self._config(script))

    def _completed(self) -> str:
        run = self._start("train.py")
        problem = _unexpected_end(run, "Completed")
        values = run.get_metrics().get("loss") if not problem else None
        if problem or (isinstance(values, list) and len(values) == POINTS):
            return problem
        return f"{run.id} has {len(values) if isinstance(values, list) else values} points instead of {POINTS}"

    def _failed(self) -> str:
        return _unexpected_end(self._start("fail.py"), "Failed")

    def _canceled(self) -> str:
        run = self._start("wait.py")
        _wait_for_start(run)
        run.cancel()
        return _unexpected_end(run, "Canceled")

    def _killed_script(self) -> str:
        run = self._start("wait.py")
        _wait_for_start(run)
        for pid in _children(_agent(run)):
            os.kill(pid, signal.SIGKILL)
        return _unexpected_end(run, "Failed")

    def _killed_agent(self) -> str:
        run = self._start("wait.py")
        _wait_for_start(run)
        os.kill(_agent(run), signal.SIGKILL)
        return _unexpected_end(run, "Failed")

    def _gang(self) -> str:
        job = PyTorchConfiguration("Gloo", process_count=2, node_count=2)
        config = ScriptRunConfig(
            self._folder, script="rank.py", compute_target=self._cluster, distributed_job_config=job
        )
        config.run_config.environment.python.user_managed_dependencies = True
        return _unexpected_end(Experiment(self._workspace, "soak-gangs").submit(config), "Completed")

    def _sweep(self) -> str:
        sweep = Experiment(self._workspace, "soak-sweeps").submit(
            HyperDriveConfig(
                run_config=self._config("sweep.py"),
                hyperparameter_sampling=RandomParameterSampling({"--x": choice(1, 2, 3, 4)}),
                primary_metric_name="score",
                primary_metric_goal=PrimaryMetricGoal.MAXIMIZE,
                max_total_runs=3,
                max_concurrent_runs=2,
            )
        )
        return _unexpected_end(sweep, "Completed")


def _unexpected_end(run: Run, expected: str) -> str:
    """Empty if the run ends as expected."""
    ended = wait_until(lambda: run.get_status() in ("Completed", "Failed", "Canceled"), _END_S)
    status = run.get_status()
    if ended and status == expected:
        return ""
    return f"{run.id} is {status} ({run.activity or run.end}) instead of {expected}"


def _wait_for_start(run: Run) -> None:
    log = run.folder / "azureml-logs" / "70_driver_log.txt"
    if not wait_until(lambda: log.exists() and log.stat().st_size, _END_S):
        raise TimeoutError(f"{run.id} does not start: {run.get_status()}, {run.activity}")


def _agent(run: Run) -> int:
    return int((run.folder / "agent.lock").read_text())


def _children(pid: int) -> list[int]:
    tasks = Path("/proc", str(pid), "task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]
