"""Fixture that submits sweeps of a small script with the current Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runyard import Experiment
from runyard.hyperdrive import (
    HyperDriveConfig,
    HyperDriveRun,
    PrimaryMetricGoal,
    RandomParameterSampling,
    choice,
)
from support import with_this_python

TRAIN = """\
import argparse, sys
from runyard import Run
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float, default=0)
parser.add_argument("--resume-from")
parser.add_argument("--verbose", action="store_true")
arguments = parser.parse_args()
run = Run.get_context()
for report in range(4):
    run.log("score", arguments.x * (report + 1))
"""


@pytest.fixture
def sweep_of(experiment: Experiment, project: Callable[..., Path]) -> Callable[..., HyperDriveRun]:
    """`sweep_of(script)` submits a sweep; further arguments go to HyperDriveConfig."""

    def start(script: str = TRAIN, arguments: Any = (), **overrides: Any) -> HyperDriveRun:
        config = with_this_python(project(train=script), "train.py", arguments=list(arguments))
        settings: dict[str, Any] = {
            "hyperparameter_sampling": RandomParameterSampling({"--x": choice(1, 2, 3, 4)}, seed=1),
            "primary_metric_name": "score",
            "primary_metric_goal": PrimaryMetricGoal.MAXIMIZE,
            "max_total_runs": 4,
            "max_concurrent_runs": 2,
            "run_config": config,
        }
        sweep = experiment.submit(HyperDriveConfig(**{**settings, **overrides}))
        assert isinstance(sweep, HyperDriveRun)
        return sweep

    return start
