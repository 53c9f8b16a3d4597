"""Data on hosts: it travels once to each, by content, and what scripts wrote there comes to the datastore."""

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
seen = {'host': os.uname().nodename}
for name, value in zip(sys.argv[1::2], sys.argv[2::2]):
    path = pathlib.Path(value)
    files = [path] if path.is_file() else sorted(p for p in path.rglob('*') if p.is_file())
    seen[name] = {str(p.relative_to(path)): p.read_text() for p in files}
out = os.environ.get('AZUREML_DATAREFERENCE_results')
if out:
    (pathlib.Path(out) / ('from-' + os.environ['RUNYARD_RANK'])).write_text('made')
print(json.dumps(seen))
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


def seen_by(run: Run, rank: str, tmp_path: Path) -> dict:
    run.download_file(f"azureml-logs/70_driver_log{rank}.txt", str(tmp_path / "log"))
    return json.loads((tmp_path / "log").read_text())


def test_a_run_on_a_host_reads_mounted_and_copied_data_and_what_it_wrote_is_uploaded(
    experiment: Experiment, on_lab: OnLab, store, net: Net, tmp_path: Path
) -> None:
    arguments = ["--data", store.path("lab").as_mount(), "--file", store.path("lab/sub/b.txt").as_mount()]
    arguments += ["--copy", store.path("lab").as_download(), "--out", store.path("made-there", "results").as_upload()]
    run = experiment.submit(on_lab(LOOK, arguments))
    assert run.wait_for_completion(raise_on_error=False)["status"] == "Completed", run.get_details()["error"]
    seen = seen_by(run, "", tmp_path)
    assert (seen["--data"], seen["--copy"], seen["--file"]) == (BOTH, BOTH, {".": "the b"})
    assert (store.folder / "made-there" / "from-0").read_text() == "made"
    eventually(lambda: not any(list(h.runs()) for h in net.hosts), "the hosts forget the run, and its own copy")


def test_data_travels_once_to_each_host(
    experiment: Experiment, on_lab: OnLab, store, home: Path, tmp_path: Path
) -> None:
    everywhere = PyTorchConfiguration("Gloo", process_count=3, node_count=3)
    reference = store.path("lab", "mnist").as_mount()
    for number in range(2):
        run = experiment.submit(on_lab(LOOK, ["--data", reference], everywhere))
        assert run.wait_for_completion(raise_on_error=False)["status"] == "Completed", run.get_details()["error"]
        seen = [seen_by(run, f"_rank_{rank}", tmp_path) for rank in range(3)]
        assert [one["--data"] for one in seen] == [BOTH] * 3
        assert len({one["host"] for one in seen}) == 3
        log = (home / "runs" / run.id / "azureml-logs" / "30_data_log.txt").read_text()
        assert number == 0 or "sent to" not in log


def test_a_place_outside_of_the_run_is_refused_on_hosts(experiment: Experiment, on_lab: OnLab, store) -> None:
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


def test_children_on_hosts_go_on_from_what_others_left_on_other_hosts(experiment: Experiment, on_lab: OnLab) -> None:
    sampling = PopulationParameterSampling({"--x": uniform(0, 1)}, 3, seed=1)
    maximize = PrimaryMetricGoal.MAXIMIZE
    sweep = experiment.submit(HyperDriveConfig(sampling, "score", maximize, 9, 3, run_config=on_lab(GENERATION)))
    sweep.wait_for_completion(raise_on_error=True)
    assert sorted(found["score"] for found in sweep.get_metrics().values()) == [1, 1, 1, 2, 2, 2, 3, 3, 3]
