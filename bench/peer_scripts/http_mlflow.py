"""MLflow's client with a server: the one in `where.json`, or MLflow's server, which is started here."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from time import perf_counter

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"

import mlflow
from mlflow.entities import Metric
from peer_protocol import serve_measurements

CALLS, BATCH = 50, 1_000
folder = Path(sys.argv[1])


def own_server():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = ["server", "--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--port", str(port), "--workers", "1"]
    command = [sys.executable, "-m", "mlflow", *words, "--default-artifact-root", str(folder / "artifacts")]
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    for _ in range(600):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1).close()
            return server, f"http://127.0.0.1:{port}"
        except OSError:
            time.sleep(0.1)
    os.killpg(server.pid, 15)
    raise SystemExit("MLflow's server did not start")


server = None
if (folder / "where.json").exists():
    where = json.loads((folder / "where.json").read_text())
    os.environ["MLFLOW_TRACKING_TOKEN"], uri = where["token"], where["url"]
else:
    server, uri = own_server()
client = mlflow.MlflowClient(uri)
run_id = client.create_run("0").info.run_id
kind = (folder / "kind").read_text()


def seconds_per_call():
    started_at = perf_counter()
    for step in range(CALLS):
        client.log_metric(run_id, "loss", 0.5, step=step)
    return (perf_counter() - started_at) / CALLS


def points_per_second():
    now = int(time.time() * 1000)
    started_at = perf_counter()
    client.log_batch(run_id, [Metric("loss", 0.5, now, step) for step in range(BATCH)])
    return BATCH / (perf_counter() - started_at)


try:
    serve_measurements(seconds_per_call if kind == "calls" else points_per_second)
    client.set_terminated(run_id)
finally:
    if server is not None:
        os.killpg(server.pid, 15)
        server.wait()
