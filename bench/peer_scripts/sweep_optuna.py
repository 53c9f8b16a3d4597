"""Optuna with subprocesses, four concurrent: children per second."""

import subprocess
import sys
import time
from pathlib import Path

import optuna
from peer_protocol import serve_measurements

optuna.logging.set_verbosity(optuna.logging.ERROR)
folder = Path(sys.argv[1])
(folder / "train.py").write_text("import sys\nprint(float(sys.argv[2]))\n")
CHILDREN = 24


def objective(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", 0, 1)
    command = [sys.executable, "train.py", "--x", str(x)]
    return float(subprocess.run(command, cwd=folder, check=True, capture_output=True).stdout)


def once() -> float:
    study = optuna.create_study(storage=f"sqlite:///{folder}/{time.time_ns()}.db")
    started_at = time.monotonic()
    study.optimize(objective, n_trials=CHILDREN, n_jobs=4)
    return CHILDREN / (time.monotonic() - started_at)


serve_measurements(once)
