"""HTML and text of runs, experiments and workspaces; user text never becomes HTML."""

from __future__ import annotations

import builtins
import math
from pathlib import Path
from typing import Any

import pytest

from runyard import Experiment, Run, RunDetails, Workspace
from runyard.errors import UserErrorException
from support import with_this_python

EVIL = "<script>alert(1)</script>"


def test_a_run_shows_its_identity_and_end(experiment: Experiment, project: Any) -> None:
    run = experiment.submit(with_this_python(project(train=f"raise SystemExit({EVIL!r})")), tags={EVIL: EVIL})
    run.wait_for_completion(raise_on_error=False)
    run.log_text("note", EVIL)
    html = run._repr_html_()
    assert "<script" not in html
    assert html.count("&lt;script&gt;") >= 4  # the reason, the tag and its value, the metric
    assert "Failed" in html
    listed = experiment._repr_html_()
    assert run.id in listed
    assert "<script" not in listed


def test_an_experiment_without_runs_is_shown_as_such(experiment: Experiment) -> None:
    assert "no runs yet" in experiment._repr_html_()


def test_a_workspace_shows_its_experiments(experiment: Experiment, workspace: Workspace, tmp_path: Path) -> None:
    experiment.start_logging(snapshot_directory=None, outputs=str(tmp_path / "outputs")).complete()
    assert experiment.name in workspace._repr_html_()


def test_outside_of_a_notebook_details_are_text(
    experiment: Experiment, project: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """B15.106."""
    script = """
from runyard import Run
Run.get_context().log("loss", 0.25)
print("10%\\rhello")
raise ValueError("no data")
"""
    run = experiment.submit(with_this_python(project(train=script)))
    run.wait_for_completion(raise_on_error=False)
    assert RunDetails(run).show() is None
    output = capsys.readouterr().out
    for expected in (run.id, "Failed", "ValueError: no data", "loss 0.25", "hello"):
        assert expected in output
    assert "10%" not in output  # a progress bar writes over itself


def test_details_need_a_run() -> None:
    with pytest.raises(UserErrorException, match="must be a run, got a str"):
        RunDetails("a run id")  # type: ignore[arg-type]


def test_runs_as_a_frame(experiment: Experiment, project: Any, tmp_path: Path) -> None:
    script = """
import sys
from runyard import Run
run = Run.get_context()
run.log("loss", 1.0)
run.log("loss", float(sys.argv[2]) / 2)
run.log("word", "good")
"""
    folder = project(train=script)
    for rate in (0.5, 0.25):
        config = with_this_python(folder, arguments=["--lr", rate])
        experiment.submit(config, tags={"team": "vision"}).wait_for_completion()
    experiment.start_logging(snapshot_directory=None, outputs=str(tmp_path / "outputs")).complete()
    frame = experiment.to_dataframe()
    assert list(frame["number"]) == sorted(frame["number"], reverse=True)
    assert list(frame["status"]) == ["Completed"] * 3
    assert list(frame["metrics.loss"])[1:] == [0.125, 0.25]
    assert math.isnan(frame["metrics.loss"][0])
    assert list(frame["params.lr"])[1:] == [0.25, 0.5]
    assert list(frame["tags.team"])[1:] == ["vision", "vision"]
    assert list(frame["metrics.word"])[1:] == ["good", "good"]
    assert str(frame["created_at"].dtype).startswith("datetime64")
    assert len(experiment.to_dataframe("lr>0.3")) == 1


def test_an_experiment_without_runs_is_an_empty_frame(experiment: Experiment) -> None:
    assert len(experiment.to_dataframe()) == 0


def test_without_pandas_the_error_names_the_package(experiment: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def without_pandas(name: str, *rest: Any) -> Any:
        if name == "pandas":
            raise ImportError(name)
        return real_import(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_pandas)
    with pytest.raises(UserErrorException, match="needs pandas") as raised:
        experiment.to_dataframe()
    assert "runyard[notebook]" in raised.value.hint


@pytest.mark.real
def test_pictures_are_files_of_the_run(experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B10.64."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    figure, axes = plt.subplots()
    axes.plot([1, 2])
    figure.savefig("kept.png")
    with experiment.start_logging(snapshot_directory=None) as run:
        run.log_image("figure", plot=figure, step=3)
        run.log_image("axes", plot=axes)
        run.log_image("pyplot", plot=plt)
        run.log_image("file", path="./kept.png")
        with pytest.raises(UserErrorException, match="expected a plot, got int"):
            run.log_image("number", plot=5)
        with pytest.raises(UserErrorException, match=r"no image file 'absent\.png'"):
            run.log_image("absent", path="absent.png")
    plt.close(figure)
    files = run.get_file_names()
    for name, address in run.get_metrics().items():
        file = address.rpartition(f"dcid.{run.id}/")[2]
        assert file in files
        target = tmp_path / "downloaded" / name
        target.parent.mkdir(exist_ok=True)
        run.download_file(file, str(target))
        assert target.read_bytes().startswith(b"\x89PNG")


def test_a_script_logs_all_kinds_of_metrics(experiment: Experiment, project: Any) -> None:
    script = """
from runyard import Run
run = Run.get_context()
run.log("loss", 0.5, step=3, timestamp=1000.0)
run.log_confusion_matrix("cm", {"class_labels": ["a", "b"], "matrix": [[1, 2], [3, 4]]})
run.log_accuracy_table("at", {"class_labels": ["a"], "probability_tables": [[[1, 2, 3, 4]]],
    "probability_thresholds": [0.5], "percentile_tables": [[[1, 2, 3, 4]]], "percentile_thresholds": [0.5]})
run.log_residuals("res", {"bin_edges": [0, 1], "bin_counts": [5]})
run.log_predictions("pred", {"bin_averages": [1], "bin_errors": [0], "bin_counts": [1], "bin_edges": [0, 1]})
run.log_histogram("weights", [1.0, 2.0], bins=1)
run.log_text("sample", "Once upon a time")
run.log_table("table", {"x": [1, 2]})
with open("note.txt", "w") as note: note.write("a note")
run.upload_file("notes/note.txt", "note.txt")
run.upload_files(["a.txt", "b.txt"], ["note.txt", "note.txt"])
run.upload_folder("folder", "sub")
"""
    folder = project(train=script)
    (folder / "sub").mkdir()
    (folder / "sub" / "x.txt").write_text("x")
    run: Run = experiment.submit(with_this_python(folder))
    run.wait_for_completion()
    series = experiment.workspace.connection.get(f"/api/runs/{run.id}/series")
    assert {entry["name"]: entry["kind"] for entry in series} == {
        "loss": "scalar",
        "cm": "confusion_matrix",
        "at": "accuracy_table",
        "res": "residuals",
        "pred": "predictions",
        "weights": "histogram",
        "sample": "text",
        "table": "table",
    }
    values = experiment.workspace.connection.get(f"/api/runs/{run.id}/values/weights")
    assert values["values"][0]["value"] == {"bin_edges": [1.0, 2.0], "bin_counts": [2]}
    assert {"notes/note.txt", "a.txt", "b.txt", "folder/x.txt"} <= set(run.get_file_names())
