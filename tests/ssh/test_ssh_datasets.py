"""Datasets on hosts: files are sent by content, and scripts find them by input name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from runyard import Dataset, Experiment, ScriptRunConfig, Workspace

SCRIPT = """
import os
from pathlib import Path
from runyard import Run

run = Run.get_context()
part, copy, itself = (run.input_datasets[name] for name in ("part", "copy", "itself"))
assert part == os.environ["part"], part
(Path(copy) / "a.txt").write_text("mine")
run.log("part", " ".join(sorted(os.listdir(part))))
run.log("itself", " ".join(itself.skip(1).to_path()))
"""


def test_a_run_on_a_host_finds_its_datasets(
    workspace: Workspace, experiment: Experiment, on_lab: Callable[..., ScriptRunConfig], tmp_path: Path
) -> None:
    for name in "abc":
        (tmp_path / "letters").mkdir(exist_ok=True)
        (tmp_path / "letters" / f"{name}.txt").write_text(name)
    store = workspace.get_default_datastore()
    letters = Dataset.File.upload_directory(str(tmp_path / "letters"), (store, "letters"), show_progress=False)
    inputs = [
        letters.take(2).as_named_input("part").as_mount(),
        letters.as_named_input("copy").as_download(),
        letters.as_named_input("itself"),
    ]
    run = experiment.submit(on_lab(SCRIPT, inputs))
    assert run.wait_for_completion(raise_on_error=False)["status"] == "Completed", run.get_details()["error"]
    assert run.get_metrics() == {"part": "a.txt b.txt", "itself": "/b.txt /c.txt"}
    assert (store.folder / "letters" / "a.txt").read_text() == "a"
