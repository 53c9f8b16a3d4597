"""Trains a model through the yard: `make demo`, or `python examples/digits/submit.py`."""

import sys
from pathlib import Path

from runyard import Experiment, PyTorch, Workspace

project = Path(__file__).parent / "project"

workspace = Workspace.from_config()  # the yard of this machine; it starts automatically
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
print(f"downloaded model.pt, {Path('model.pt').stat().st_size:,} bytes\n")
runyard = Path(sys.executable).with_name("runyard")
print("Next steps:")
print(f"  {runyard} show @last     the run and the duration of each step")
print(f"  {runyard} rerun @last    the same code and environment again; it starts immediately")
print(f"  {runyard} studio         all runs, live, in a browser")
print("  edit examples/digits/project/train.py and repeat `make demo`: only changed files are copied")
