"""Data on Slurm: the nodes share the yard's files, so local data is read in place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from runyard import PyTorchConfiguration, Run, Workspace

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("slurm")]

LOOK = """
import json, os, pathlib, sys
inputs = {}
for name, value in zip(sys.argv[1::2], sys.argv[2::2]):
    path = pathlib.Path(value)
    inputs[name] = {str(p.relative_to(path)): p.read_text() for p in sorted(path.rglob('*')) if p.is_file()}
rank = os.environ['RUNYARD_RANK']
(pathlib.Path(os.environ['AZUREML_DATAREFERENCE_results']) / rank).write_text('made')
(pathlib.Path('outputs') / f'inputs_{rank}.json').write_text(json.dumps(inputs))
"""


def test_every_node_reads_the_data_and_outputs_are_uploaded(
    workspace: Workspace, submit: Callable[..., Run], tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "b.txt").write_text("the b")
    store = workspace.get_default_datastore()
    store.upload(str(folder), "slurm", show_progress=False)
    arguments = ("--data", store.path("slurm").as_mount(), "--copy", store.path("slurm").as_download())
    out = store.path("made", "results").as_upload()
    run = submit(LOOK, *arguments, "--out", out, job=PyTorchConfiguration("Gloo", process_count=2, node_count=2))
    assert run.wait_for_completion(raise_on_error=False)["status"] == "Completed", run.get_details()["error"]
    for rank in range(2):
        run.download_file(f"outputs/inputs_{rank}.json", str(tmp_path / "inputs"))
        inputs = json.loads((tmp_path / "inputs").read_text())
        assert inputs["--data"] == inputs["--copy"] == {"sub/b.txt": "the b"}
    assert store.list("made") == ["made/0", "made/1"]
