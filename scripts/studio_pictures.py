"""Take the pictures of docs/guides/studio.md in Chromium: real runs, a sweep, models and a service in a temporary home.

Run it by hand after a visible change: `make ui && .venv/bin/python scripts/studio_pictures.py` takes about a minute.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from runyard import (
    Dataset,
    Environment,
    Experiment,
    InferenceConfig,
    LocalWebservice,
    Model,
    Run,
    ScriptRunConfig,
    Workspace,
)
from runyard.client.connection import Connection
from runyard.hyperdrive import GridParameterSampling, HyperDriveConfig, PrimaryMetricGoal, choice

GUIDES = Path(__file__).resolve().parent.parent / "docs" / "guides"
CURVES = [("adam", 0.01, 4), ("adam", 0.003, 4), ("sgd", 0.1, 8), ("sgd", 0.03, 8), ("adam", 0.03, 2), ("sgd", 0.01, 2)]
WIDTH = 1280

TRAIN = """\
import argparse
import json
import math
import os
import random

from runyard import Run

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--layers", type=int, default=4)
parser.add_argument("--optimizer", default="adam")
parser.add_argument("--data")
args = parser.parse_args()

run = Run.get_context()
chance = random.Random(f"{args.lr} {args.layers} {args.optimizer}")
speed = args.lr ** 0.5 * (2 if args.optimizer == "adam" else 1)
for step in range(400):
    progress = 1 - math.exp(-step * speed / 25)
    loss = 2.3 - 2.1 * progress + chance.gauss(0, 0.05)
    accuracy = min(1.0, max(0.0, 0.1 + 0.87 * progress + chance.gauss(0, 0.01)))
    run.log("train/loss", loss, step=step)
    run.log("train/accuracy", accuracy, step=step)
    if step % 10 == 0:
        run.log("val/loss", loss * 1.1 + chance.gauss(0, 0.03), step=step)
        run.log("val/accuracy", accuracy - 0.02, step=step)
        print(f"step {step}: loss {loss:.4f}, accuracy {accuracy:.4f}")
run.log("test accuracy", accuracy)
digits = [str(digit) for digit in range(10)]
counts = [[170 + chance.randrange(10) if a == b else chance.randrange(4) for b in range(10)] for a in range(10)]
matrix = {"class_labels": digits, "matrix": counts}
run.log_confusion_matrix("confusion", {"schema_type": "confusion_matrix", "schema_version": "1.0.0", "data": matrix})
os.makedirs("outputs", exist_ok=True)
with open("outputs/model.json", "w") as file:
    json.dump(10, file)
if args.lr >= 0.1:
    raise ValueError("the loss diverged: reduce --lr")
"""

SCORE = """\
import json
from runyard import Model

def init():
    global factor
    with open(Model.get_model_path("digits")) as file:
        factor = json.load(file)

def run(text):
    return [factor * number for number in json.loads(text)["data"]]
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=GUIDES, help="folder for the pictures")
    parser.add_argument("--dark", action="store_true", help="use the dark theme")
    options = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="ry-"))
    os.environ["RUNYARD_HOME"] = str(home)
    try:
        runs = fill_home(home / "project")
        take_pictures(home, runs, options.into, "dark" if options.dark else "light")
    finally:
        for service in LocalWebservice.list(Workspace()):
            service.delete()
        subprocess.run([sys.executable, "-m", "runyard", "yard", "stop"], check=False, capture_output=True)
        shutil.rmtree(home, ignore_errors=True)
    return 0


def fill_home(project: Path) -> list[Run]:
    """Create the content of every page in the home of the environment and return the runs of the comparison."""
    workspace = Workspace()
    project.mkdir(parents=True)
    (project / "train.py").write_text(TRAIN)
    runs = [submit(workspace, "digits", project, *values) for values in CURVES]
    sweep = Experiment(workspace, "digits-sweep").submit(
        HyperDriveConfig(
            GridParameterSampling({"--lr": choice(0.01, 0.03), "--layers": choice(2, 4)}),
            "val/accuracy",
            PrimaryMetricGoal.MAXIMIZE,
            4,
            2,
            run_config=script(project, []),
        )
    )
    for run in [*runs, sweep]:
        run.wait_for_completion(raise_on_error=False)
    for name, run in zip(("baseline", "small steps"), runs):
        run.display_name = name
        run.tag("team", "vision")
    for run in (runs[0], runs[1]):
        run.register_model("digits", "outputs/model.json", tags={"team": "vision"}, model_framework="PyTorch")
    (project / "labels.csv").write_text("file,digit\n1.png,7\n")
    store = workspace.get_default_datastore()
    store.upload_files([str(project / "labels.csv")], target_path="digits", show_progress=False)
    Dataset.File.from_files((store, "digits/")).register(workspace, "digits")
    serve(workspace, project)
    return [run for run in runs if run.get_status() == "Completed"]


def submit(workspace: Workspace, experiment: str, project: Path, optimizer: str, lr: float, layers: int) -> Run:
    arguments = ["--optimizer", optimizer, "--lr", lr, "--layers", layers]
    return Experiment(workspace, experiment).submit(script(project, arguments))


def script(project: Path, arguments: list[Any]) -> ScriptRunConfig:
    config = ScriptRunConfig(str(project), "train.py", arguments=arguments)
    config.run_config.environment.python.user_managed_dependencies = True
    return config


def current_python() -> Environment:
    environment = Environment("this-python")
    environment.python.user_managed_dependencies = True
    return environment


def serve(workspace: Workspace, project: Path) -> None:
    """Deploy a service with two versions and send requests to it."""
    (project / "score.py").write_text(SCORE)
    config = InferenceConfig("score.py", source_directory=str(project), environment=current_python())
    models = [Model(workspace, name="digits", version=1)]
    service = Model.deploy(workspace, "digits", models, config, LocalWebservice.deploy_configuration())
    service.wait_for_deployment()
    Connection(workspace.home).post("/api/services/digits/versions", {"traffic_percentile": 20, "models": ["digits:2"]})
    service.wait_for_deployment()
    for number in range(600):
        service.run(json.dumps({"data": [number]}))


def take_pictures(home: Path, runs: list[Run], folder: Path, theme: str) -> None:
    ids = ",".join(run.id for run in runs)
    columns = "status,name,experiment,params.lr,params.optimizer,metrics.val/accuracy,reason"
    pictures = {
        "studio-runs": (f"/runs?cols={columns}&sel={ids}", 640, "#run-row-0"),
        "studio-run": (f"/runs/{runs[1].id}?smooth=0.6", 760, "canvas"),
        "studio-compare": (f"/compare?runs={ids}&smooth=0.6", 700, "canvas"),
        "studio-service": ("/services/digits", 680, "canvas"),
    }
    flags = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        page = chromium.new_context(color_scheme=theme).new_page()  # type: ignore[arg-type]
        url = sign_in(page, home)
        for name, (path, height, content) in pictures.items():
            page.set_viewport_size({"width": WIDTH, "height": height})
            page.goto(url + path)
            page.locator(content).first.wait_for()
            page.wait_for_timeout(3000)  # charts and live numbers are drawn
            picture = Image.open(io.BytesIO(page.screenshot()))
            picture.quantize(128).save(folder / f"{name}.png", optimize=True)  # a third of the size
            print(folder / f"{name}.png")
        chromium.close()


def sign_in(page: Page, home: Path) -> str:
    address = Connection(home).post("/api/studio", {})
    url = str(address["url"]).rstrip("/")
    page.goto(f"{url}/?token={address['ticket']}")
    return url


if __name__ == "__main__":
    sys.exit(main())
