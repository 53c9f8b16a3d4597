"""Ray Tune, four concurrent: children per second."""

import os
import sys
import time

os.environ["RAY_AIR_NEW_OUTPUT"] = "0"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import ray
from peer_protocol import serve_measurements
from ray import tune

ray.init(num_cpus=4, log_to_driver=False, include_dashboard=False)
CHILDREN = 8


def train(config: dict) -> dict:
    return {"score": config["x"]}


def once() -> float:
    started_at = time.monotonic()
    tune.Tuner(
        train,
        param_space={"x": tune.uniform(0, 1)},
        tune_config=tune.TuneConfig(num_samples=CHILDREN, max_concurrent_trials=4, metric="score", mode="max"),
        run_config=tune.RunConfig(storage_path=sys.argv[1], verbose=0),
    ).fit()
    return CHILDREN / (time.monotonic() - started_at)


serve_measurements(once)
