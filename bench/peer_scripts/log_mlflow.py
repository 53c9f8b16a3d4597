import os
import sys
from time import perf_counter

os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"

import mlflow
from peer_protocol import serve_measurements

CALLS = 50
mlflow.set_tracking_uri(f"file://{sys.argv[1]}/runs")
mlflow.set_experiment("bench")
mlflow.start_run()


def seconds_per_call():
    started_at = perf_counter()
    for step in range(CALLS):
        mlflow.log_metric("loss", 0.5, step=step)
    return (perf_counter() - started_at) / CALLS


serve_measurements(seconds_per_call)
mlflow.end_run()
