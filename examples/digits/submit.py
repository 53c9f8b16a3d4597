"""Trains a real model through the yard: `make demo`, or `python examples/digits/submit.py`."""

import sys
from pathlib import Path

from runyard import Experiment, PyTorch, Workspace

project = Path(__file__).parent / "project"

workspace = Workspace.from_config()  # the yard of this machine, started by itself
estimator = PyTorch(
    project,
    entry_script="train.py",
    script_params={"--lr": 0.1, "--verbose": ""},
    compute_target="local",
    pip_packages=["scikit-learn"],
    use_gpu=False,
)
run = Experiment(workspace, "digits").submit(estimator)
run.wait_for_completion(show_output=True)

metrics = run.get_metrics()
print(f"accuracy {metrics['accuracy'][-1]:.4f} after {len(metrics['accuracy'])} epochs, lr {metrics['lr']}")
run.download_file("outputs/model.pt", "model.pt")
print(f"model.pt is here: {Path('model.pt').stat().st_size:,} bytes\n")
runyard = Path(sys.executable).with_name("runyard")
print("What next?")
print(f"  {runyard} show @last     what it was, how long each step took")
print(f"  {runyard} rerun @last    the same code and Python once more: it starts at once")
print(f"  {runyard} studio         every run, live, in a browser")
print("  edit examples/digits/project/train.py, and `make demo` again: only what changed is copied")
