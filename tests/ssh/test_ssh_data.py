"""Data on hosts: sent to each host once, by content; outputs are uploaded to the datastore."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from runyard import Experiment, PyTorchConfiguration, Run, ScriptRunConfig, Workspace
from runyard.errors import UserErrorException
from runyard.hyperdrive import HyperDriveConfig, PopulationParameterSampling, PrimaryMetricGoal, uniform
from ssh_hosts import Net
from support import eventually

OnLab = Callable[..., ScriptRunConfig]

LOOK = """
import json, os, pathlib, sys
inputs = {'host': os.uname().nodename}
for name, value in zip(sys.argv[1::2], sys.argv[2::2]):
    path = pathlib.Path(value)
    files = [path] if path.is_file() else sorted(p for p in path.rglob('*') if p.is_file())
    inputs[name] = {str(p.relative_to(path)): p.read_text() for p in files}
out = os.environ.get('AZUREML_DATAREFERENCE_results')
if out:
    (pathlib.Path(out) / ('from-' + os.environ['RUNYARD_RANK'])).write_text('made')
print(json.dumps(inputs))
"""
BOTH = {"a.txt": "the a", "sub/b.txt": "the b"}


@pytest.fixture
def store(workspace: Workspace, tmp_path: Path):
    folder = tmp_path / "data"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_text("the a")
    (folder / "sub" / "b.txt").write_text("the b")
    store = workspace.get_default_datastore()
    store.upload(str(folder), "lab", show_progress=False)
    return store


def inputs_of(run: Run, rank: str, tmp_path: Path) -> dict:
    run.download_file(f"azureml-logs/70_driver_log{rank}.txt", str(tmp_path / "log"))
    return json.loads((tmp_path / "log").read_text())


def test_a_run_on_a_host_reads_mounted_and_copied_data_and_uploads_outputs(
    experiment: Experiment, on_lab: OnLab, store, net: Net, tmp_path: Path
) -> None:
    arguments = ["--data", store.path("lab").as_mount(), "--file", store.path("lab/sub/b.txt").as_mount()]
    arguments += ["--copy", store.path("lab").as_download(), "--out", store.path("made-there", "results").as_upload()]
    run = experiment.submit(on_lab(LOOK, arguments))
    assert run.wait_for_completion(raise_on_error=False)["status"] == "Completed", run.get_details()["error"]
    inputs = inputs_of(run, "", tmp_path)
    assert (inputs["--data"], inputs["--copy"], inputs["--file"]) == (BOTH, BOTH, {".": "the b"})
    assert (store.folder / "made-there" / "from-0").read_text() == "made"
    eventually(lambda: not any(list(h.runs()) for h in net.hosts), "the hosts delete the run with its private copy")


def test_data_is_sent_to_each_host_once(
    experiment: Experiment, on_lab: OnLab, store, home: Path, tmp_path: Path
) -> None:
    everywhere = PyTorchConfiguration("Gloo", process_count=3, node_count=3)
    reference = store.path("lab", "mnist").as_mount()
    for number in range(2):
        run = experiment.submit(on_lab(LOOK, ["--data", reference], everywhere))
        assert run.wait_for_completion(raise_on_error=False)["status"] == "Completed", run.get_details()["error"]
        inputs = [inputs_of(run, f"_rank_{rank}", tmp_path) for rank in range(3)]
        assert [rank_inputs["--data"] for rank_inputs in inputs] == [BOTH] * 3
        assert len({rank_inputs["host"] for rank_inputs in inputs}) == 3
        log = (home / "runs" / run.id / "azureml-logs" / "30_data_log.txt").read_text()
        assert number == 0 or "sent to" not in log


def test_an_absolute_path_on_compute_is_refused_on_hosts(experiment: Experiment, on_lab: OnLab, store) -> None:
    with pytest.raises(UserErrorException, match="path_on_compute"):
        experiment.submit(on_lab("pass", [store.path("lab").as_download(path_on_compute="/data")]))


GENERATION = """
import argparse, pathlib
from runyard import Run
parser = argparse.ArgumentParser()
parser.add_argument('--x', type=float)
parser.add_argument('--resume-from')
a = parser.parse_args()
before = int(pathlib.Path(a.resume_from, 'deep', 'count').read_text()) if a.resume_from else 0
pathlib.Path('outputs/deep').mkdir(parents=True)
pathlib.Path('outputs/deep/count').write_text(str(before + 1))
Run.get_context().log('score', before + 1)
"""


def test_children_continue_from_outputs_of_other_hosts(experiment: Experiment, on_lab: OnLab) -> None:
    sampling = PopulationParameterSampling({"--x": uniform(0, 1)}, 3, seed=1)
    maximize = PrimaryMetricGoal.MAXIMIZE
    sweep = experiment.submit(HyperDriveConfig(sampling, "score", maximize, 9, 3, run_config=on_lab(GENERATION)))
    sweep.wait_for_completion(raise_on_error=True)
    assert sorted(metrics["score"] for metrics in sweep.get_metrics().values()) == [1, 1, 1, 2, 2, 2, 3, 3, 3]
