"""Scripts of the runs and the service in the home that `make_home.py` makes, and a run of MLflow to import."""

from __future__ import annotations

SCRIPTS = {
    "train.py": """
import argparse, os
from runyard import Run

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
rate = parser.parse_args().lr
if rate <= 0:
    raise ValueError(f"the learning rate must be positive, got {rate}")
run = Run.get_context()
print("learning rate", rate)
for epoch in range(5):
    run.log("loss", rate / (epoch + 1), step=epoch)
run.log("odd", float("nan"))
run.log("odd", float("inf"))
run.log("accuracy", 0.1 + 0.2)
run.log("epochs", 5)
run.log("optimizer", "sgd")
run.log_list("accuracies", [0.6, 0.7, 0.89])
run.log_row("by class", cats=0.9, dogs=0.8)
run.log_table("roc", {"fpr": [0.0, 0.5, 1.0], "tpr": [0.0, 0.9, 1.0]})
run.log_confusion_matrix("confusion", {"class_labels": ["cat", "dog"], "matrix": [[9, 1], [2, 8]]})
os.makedirs("outputs/plots", exist_ok=True)
with open("outputs/model.json", "w") as file:
    file.write('{"weights": [2, 10]}')
with open("outputs/plots/curve.bin", "wb") as file:
    file.write(bytes(range(256)))
""",
    "wait.py": """
import time
from runyard import Run

Run.get_context().log("started", 1)
print("waiting", flush=True)
time.sleep(3600)
""",
    "read.py": """
import sys
from pathlib import Path
from runyard import Run

lines = [path.read_text() for path in sorted(Path(sys.argv[1]).rglob("*.txt"))]
Run.get_context().log("files", len(lines))
print("".join(lines))
""",
    "rank.py": """
import os
from runyard import Run

rank = int(os.environ["RANK"])
Run.get_context().log(f"rank {rank}", rank + 0.5)
print(f"process {rank} of {os.environ['WORLD_SIZE']}")
""",
    "tune.py": """
import argparse
from runyard import Run

parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
parser.add_argument("--size", type=int)
arguments = parser.parse_args()
run = Run.get_context()
for report in range(3):
    run.log("score", (report + 1) * arguments.x + arguments.size)
""",
}
SCORE = """
import json
from azureml.core.model import Model

def init():
    global weights
    with open(Model.get_model_path("digits")) as file:
        weights = json.load(file)["weights"]

def run(text):
    return [sum(w * x for w, x in zip(weights, row)) for row in json.loads(text)["data"]]
"""
MLFLOW_RUN = {
    "meta.yaml": "artifact_location: ''\nexperiment_id: '1'\nlifecycle_stage: active\nname: elsewhere\n",
    "RUN/meta.yaml": "artifact_uri: ''\nend_time: 1700000005000\nexperiment_id: '1'\nlifecycle_stage: active\n"
    "run_id: RUN\nrun_name: imported\nrun_uuid: RUN\nstart_time: 1700000000000\nstatus: 3\nuser_id: ada\n",
    "RUN/metrics/loss": "1700000001000 0.5 0\n1700000002000 0.25 1\n",
    "RUN/params/lr": "0.1",
    "RUN/tags/team": "vision",
    "RUN/artifacts/notes.txt": "from elsewhere\n",
}
