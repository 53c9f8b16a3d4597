"""Points per second with `log_batch`, a thousand per call, into a SQLite database."""

import os
import sys
import time
from time import perf_counter

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"

import mlflow
from mlflow.entities import Metric
from peer_protocol import serve_measurements

POINTS, BATCH = 5_000, 1_000
client = mlflow.MlflowClient(f"sqlite:///{sys.argv[1]}/mlflow.db")
run_id = client.create_run("0").info.run_id


def points_per_second():
    now = int(time.time() * 1000)
    started_at = perf_counter()
    for first in range(0, POINTS, BATCH):
        client.log_batch(run_id, [Metric("loss", 0.5, now, step) for step in range(first, first + BATCH)])
    return POINTS / (perf_counter() - started_at)


serve_measurements(points_per_second)
