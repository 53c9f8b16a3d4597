"""Behavior that scripts for SDK v1 rely on: submission, metrics, files, details, labels, children, queries."""

from __future__ import annotations

import io
import json
import re
import types
from pathlib import Path

import pytest

from runyard import CondaDependencies, Experiment, Run, ScriptRunConfig, Workspace
from runyard.errors import (
    ActivityFailedException,
    EnvironmentException,
    ExperimentExecutionException,
    RunEnvironmentException,
    RunyardException,
    UserErrorException,
)
from support import eventually, with_this_python

STATUSES = {
    "NotStarted", "Queued", "Preparing", "Provisioning", "Starting", "Running", "Finalizing", "CancelRequested",
    "Completed", "Failed", "Canceled", "NotResponding", "Paused", "Pausing", "Unapproved",
}  # fmt: skip


@pytest.fixture
def run(experiment: Experiment) -> Run:
    return experiment.start_logging(snapshot_directory=None)


# submission and waiting


def test_a_second_positional_dict_is_tags_with_text_values(experiment: Experiment, project) -> None:
    """B8.48."""
    run = experiment.submit(with_this_python(project(train="print(1)")), {"lr": 0.1, "on": True, "none": None})
    assert run.get_tags() == {"lr": "0.1", "on": "True", "none": None}
    run.wait_for_completion()


def test_config_may_be_a_keyword(experiment: Experiment, project) -> None:
    """B8.48, B8.52."""
    run = experiment.submit(config=with_this_python(project(train="print(1)")), tags={"a": "b"})
    assert run.wait_for_completion() == run.get_details()
    assert run.get_tags() == {"a": "b"}


@pytest.mark.parametrize("thing", [None, 7, "train.py", {}, [], object()], ids=lambda thing: type(thing).__name__)
def test_only_run_configurations_can_be_submitted(experiment: Experiment, thing: object) -> None:
    """B8.48."""
    with pytest.raises(RunyardException, match="cannot be submitted"):
        experiment.submit(thing)


def test_missing_folders_and_scripts_are_reported_at_submission(
    experiment: Experiment, project, tmp_path: Path
) -> None:
    """B6.31."""
    folder = project(train="print(1)")
    for source, script in ((tmp_path / "nowhere", "train.py"), (folder, "nothing.py"), (folder, "../outside.py")):
        with pytest.raises((ExperimentExecutionException, UserErrorException, RunyardException)):
            experiment.submit(ScriptRunConfig(str(source), script=script))
    assert list(experiment.get_runs()) == []


@pytest.mark.parametrize("packages_spec", [{"pip": ["num py"]}, {"python": "2.7"}])
def test_invalid_packages_are_reported_at_submission(experiment: Experiment, project, packages_spec: dict) -> None:
    config = ScriptRunConfig(project(train="print('never')"), script="train.py")
    packages = CondaDependencies.create(pip_packages=packages_spec.get("pip", []))
    if "python" in packages_spec:
        packages.set_python_version(packages_spec["python"])
    config.run_config.environment.python.conda_dependencies = packages
    with pytest.raises(EnvironmentException, match=r"num py|2\.7"):
        experiment.submit(config)
    assert list(experiment.get_runs()) == []


def test_a_missing_python_is_refused_before_a_run_is_created(experiment: Experiment, project) -> None:
    config = with_this_python(project(train="print(1)"))
    config.run_config.environment.python.interpreter_path = "/nowhere/python"
    with pytest.raises(EnvironmentException, match="no Python interpreter at '/nowhere/python'"):
        experiment.submit(config)
    assert list(experiment.get_runs()) == []


def test_ctrl_c_while_streaming_reports_that_the_run_continues(
    experiment: Experiment, project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = tmp_path / "go"
    wait = f"import os, time\nprint('here', flush=True)\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)"
    run = experiment.submit(with_this_python(project(train=wait)))

    class Screen(io.StringIO):
        def write(self, text: str) -> int:
            if "here" in text:
                raise KeyboardInterrupt
            return super().write(text)

    monkeypatch.setattr("sys.stdout", Screen())
    with pytest.raises(ExperimentExecutionException, match="the run continues"):
        run.wait_for_completion(show_output=True)
    go.touch()
    assert run.wait_for_completion()["status"] == "Completed"


def test_every_status_is_one_of_sdk_v1(experiment: Experiment, project) -> None:
    """B8.51."""
    run = experiment.submit(with_this_python(project(train="print(1)")))
    statuses = {run.get_status()}
    while run.get_status() != "Completed":
        statuses.add(run.status)
    assert statuses <= STATUSES


def test_status_is_cached_and_get_status_refreshes_it(experiment: Experiment, run: Run) -> None:
    """B8.51."""
    same = Run(experiment, run.id)
    assert same.status == "Running"
    run.complete()
    assert same.status == "Running"
    eventually(lambda: same.get_status() == "Completed", "it is completed")
    assert same.status == "Completed"


def test_a_failed_run_raises_its_error_unless_disabled(experiment: Experiment, project) -> None:
    """B8.52, B8.55."""
    run = experiment.submit(with_this_python(project(train="import sys\nprint('so far')\nsys.exit(7)")))
    with pytest.raises(ActivityFailedException) as caught:
        run.wait_for_completion()
    json.dumps(caught.value.error_details)
    assert "exit code 7" in caught.value.message
    details = run.wait_for_completion(raise_on_error=False)
    assert details["error"]["error"]["code"]
    assert details["error"]["error"]["details"]["exit_code"] == 7


def test_fail_marks_a_submitted_run_and_stops_its_script(experiment: Experiment, project) -> None:
    """B8.54."""
    run = experiment.submit(with_this_python(project(train="import time\ntime.sleep(600)")))
    eventually(lambda: run.get_status() == "Running", "it runs")
    run.fail("looked wrong", "E1")
    details = run.wait_for_completion(raise_on_error=False)
    assert details["status"] == "Failed"
    assert "looked wrong" in details["error"]["message"]


def test_cancel_from_inside_does_nothing_and_complete_does_not_end(experiment: Experiment, project) -> None:
    """B8.54."""
    script = """
from runyard import Run
run = Run.get_context()
run.cancel()
run.complete()
assert run.get_status() == 'Running', run.get_status()
run.log('later', 1)
run.flush()
"""
    run = experiment.submit(with_this_python(project(train=script)))
    assert run.wait_for_completion()["status"] == "Completed"
    assert run.get_metrics() == {"later": 1}


@pytest.mark.parametrize("moment", ["at once", "ended"])
def test_cancel_works_in_every_state(experiment: Experiment, project, moment: str) -> None:
    seconds = 0.1 if moment == "ended" else 600
    run = experiment.submit(with_this_python(project(train=f"import time\ntime.sleep({seconds})")))
    if moment == "ended":
        run.wait_for_completion()
    run.cancel()
    run.cancel()
    assert run.wait_for_completion()["status"] == ("Completed" if moment == "ended" else "Canceled")


# the run from inside its script


def test_the_offline_context_prints_and_has_no_other_attributes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """B9.57."""
    monkeypatch.delenv("RUNYARD_RUN_ID", raising=False)
    run = Run.get_context()
    run.log("loss", 0.5)
    run.log_list("l", [1])
    run.log_row("r", a=1)
    run.log_table("t", {"a": [1]})
    run.tag("k", "v")
    run.upload_file("f", "path")
    output = capsys.readouterr().out
    assert "Attempted to log scalar metric loss:\n0.5" in output
    for name in ("get_metrics", "experiment", "create_children", "get_file_names"):
        assert not hasattr(run, name)
    for refuse in (lambda: Run.get_context(allow_offline=False), Run.get_submitted_run):
        with pytest.raises(RunEnvironmentException):
            refuse()


# metrics


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (lambda r: r.log("x", 1), 1),
        (lambda r: [r.log("x", v) for v in (1, 2, 3)], [1, 2, 3]),
        (lambda r: [r.log("x", v) for v in (1, 2.5)], [1.0, 2.5]),
        (lambda r: r.log("x", "0.123"), "0.123"),
        (lambda r: r.log("x", True), True),
        (lambda r: r.log("x", None), None),
        (lambda r: r.log("x", 1j), "1j"),
        (lambda r: r.log_list("x", [1]), 1),
        (lambda r: r.log_list("x", []), ...),
        (lambda r: r.log_list("x", (n for n in range(3))), [0, 1, 2]),
        (lambda r: r.log_list("x", [1, 2.5]), [1.0, 2.5]),
        (lambda r: r.log_row("x", a=1, b="t"), {"a": 1, "b": "t"}),
        (lambda r: [r.log_row("x", a=1), r.log_row("x", a=2)], {"a": [1, 2]}),
        (lambda r: r.log_table("x", {"a": [1, 2], "b": [3, 4]}), {"a": [1, 2], "b": [3, 4]}),
        (lambda r: r.log_table("x", {"a": [1]}), {"a": 1}),
        (lambda r: [r.log_table("x", {"a": [1, 2]}), r.log_row("x", a=3)], {"a": [1, 2, 3]}),
    ],
)
def test_metrics_are_returned_in_the_format_of_sdk_v1(run: Run, log, expected: object) -> None:
    """B10.60, B10.61, B10.62."""
    log(run)
    assert run.get_metrics() == ({} if expected is ... else {"x": expected})
    assert run.get_metrics("x") == ({} if expected is ... else {"x": expected})
    run.complete()


@pytest.mark.parametrize(
    ("log", "error"),
    [
        (lambda r: r.log("x", [1]), UserErrorException),
        (lambda r: r.log("x", range(3)), UserErrorException),
        (lambda r: r.log("x", (n for n in range(3))), UserErrorException),
        (lambda r: r.log_list("x", [1, 1j]), RunyardException),
        (lambda r: r.log_row("x", a=[1]), RunyardException),
        (lambda r: r.log_table("x", {"a": [1, 2], "b": [1]}), RunyardException),
        (lambda r: r.log_image("x"), RunyardException),
        (lambda r: r.log_image("x", path="a.png", plot=object()), RunyardException),
    ],
)
def test_values_that_sdk_v1_refused_are_refused_and_not_stored(run: Run, log, error: type[Exception]) -> None:
    """B10.61, B10.62, B10.63."""
    with pytest.raises(error):
        log(run)
    assert run.get_metrics() == {}
    run.complete()


def test_numpy_values_are_converted_to_plain_values(run: Run) -> None:
    """B10.63: whole numbers of any width come back as numbers, where SDK v1 stored a string for some."""
    numpy = pytest.importorskip("numpy")
    for kind, value in (("float32", 0.5), ("float64", 0.1), ("int8", 3), ("int32", 4), ("bool_", True), ("str_", "t")):
        run.log(kind, getattr(numpy, kind)(value))
    assert run.get_metrics() == {
        "float32": 0.5, "float64": 0.1, "int8": 3, "int32": 4, "bool_": True, "str_": "t",
    }  # fmt: skip
    run.complete()


def test_a_notebook_may_log_on_a_submitted_and_on_an_ended_run(experiment: Experiment, project) -> None:
    """B10.65."""
    run = experiment.submit(with_this_python(project(train="print(1)")))
    run.log("early", 1)
    run.wait_for_completion()
    run.log("late", 2)
    run.upload_file("note.txt", io.BytesIO(b"note"))
    assert Run(experiment, run.id).get_metrics() == {"early": 1, "late": 2}
    assert "note.txt" in run.get_file_names()


# files


def test_downloads_use_the_paths_of_sdk_v1(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B11.69, B11.70."""
    monkeypatch.chdir(tmp_path)
    for name in ("outputs/model/a", "outputs/model/sub/b", "outputs/modelling", "other"):
        run.upload_file(name, io.BytesIO(name.encode()))
    run.download_file("outputs/model/a")
    assert Path("a").read_text() == "outputs/model/a"
    Path("folder").mkdir()
    run.download_file("outputs/model/a", "folder")
    assert Path("folder/a").exists()
    with pytest.raises(UserErrorException, match="does not exist"):
        run.download_file("outputs/model/a", "no/folder/x")
    with pytest.raises(UserErrorException, match="has no file"):
        run.download_file("outputs/nothing")
    assert not Path("nothing").exists()
    run.download_files(prefix="outputs/model", output_directory="./model", append_prefix=False)
    assert sorted(p.relative_to("model").as_posix() for p in Path("model").rglob("*") if p.is_file()) == ["a", "sub/b"]
    run.download_files(prefix="outputs/model", output_directory="whole")
    assert Path("whole/outputs/model/sub/b").exists()
    run.complete()


def test_upload_returns_the_format_of_sdk_v1(run: Run, tmp_path: Path) -> None:
    """B11.71."""
    (tmp_path / "x").write_text("x")
    with open(tmp_path / "x", "rb") as opened:
        for source in (str(tmp_path / "x"), tmp_path / "x", io.BytesIO(b"x"), opened):
            answer = run.upload_file("name.txt", source).serialize()
            assert {"artifacts", "artifactContentInformation", "errors"} <= set(answer)
    with pytest.raises(UserErrorException):
        run.upload_file("x", str(tmp_path / "nowhere"))
    run.complete()


def test_a_second_snapshot_is_tolerated(experiment: Experiment, tmp_path: Path, monkeypatch) -> None:
    """B11.74."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "note.py").write_text("1")
    with experiment.start_logging() as run:
        first = run.get_properties()["ContentSnapshotId"]
        run.take_snapshot("./")
        assert run.get_properties()["ContentSnapshotId"] == first
    path = run.restore_snapshot(path="new/snapshots")
    assert Path(path).is_absolute()
    assert Path(path).exists()


def test_snapshots_exclude_files_in_amlignore(experiment: Experiment, project, tmp_path: Path) -> None:
    """B11.75."""
    import zipfile

    folder = project(train="import os\nprint(sorted(os.listdir('.')))", data="big = 1")
    (folder / ".amlignore").write_text("data.py\n")
    run = experiment.submit(with_this_python(folder))
    run.wait_for_completion()
    with zipfile.ZipFile(run.restore_snapshot(path=str(tmp_path / "s"))) as archive:
        assert "data.py" not in archive.namelist()
        assert "train.py" in archive.namelist()


# details, labels, children, queries


def test_details_have_the_keys_of_sdk_v1(experiment: Experiment, project) -> None:
    """B12.77, B12.78."""
    run = experiment.submit(with_this_python(project(train="print('hello')"), arguments=["--n", 1]))
    details = run.wait_for_completion()
    keys = {
        "runId", "target", "status", "startTimeUtc", "endTimeUtc", "properties", "inputDatasets", "outputDatasets",
        "runDefinition", "logFiles", "submittedBy", "services",
    }  # fmt: skip
    assert keys <= set(details)
    assert "error" not in details
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", details["startTimeUtc"])
    assert {
        "script", "arguments", "framework", "communicator", "target", "nodeCount", "dataReferences", "data",
        "maxRunDurationSeconds", "environment", "history", "tensorflow", "mpi", "pyTorch",
    } <= set(details["runDefinition"])  # fmt: skip
    assert details["runDefinition"]["arguments"] == ["--n", "1"]
    assert details["properties"]["ContentSnapshotId"]
    assert "hello\n" in run.get_details_with_logs()["logFiles"].values()
    json.dumps(details)


def test_labels_are_text_and_properties_are_immutable(run: Run) -> None:
    """B12.79."""
    run.tag("x")
    run.set_tags({"n": 1.5, "b": True})
    run.add_properties({"p": 1})
    assert run.get_tags() == {"x": None, "n": "1.5", "b": "True"}
    assert run.get_properties() == {"p": "1"}
    with pytest.raises(RunyardException):
        run.add_properties({"p": 2})
    with pytest.raises(UserErrorException):
        run.set_tags("x")  # type: ignore[arg-type]
    run.complete()


def test_get_runs_is_a_generator_and_combines_conditions_with_and(experiment: Experiment) -> None:
    """B12.80."""
    for number in range(5):
        with experiment.start_logging(snapshot_directory=None) as run:
            run.set_tags({"even": None} if number % 2 == 0 else {"odd": None})
            run.add_properties({"number": number})
            run.child_run().complete()
    runs = experiment.get_runs()
    assert isinstance(runs, types.GeneratorType)
    assert [run.get_properties()["number"] for run in runs] == ["4", "3", "2", "1", "0"]
    both = experiment.get_runs(tags="even", properties={"number": 2})
    assert [run.get_properties()["number"] for run in both] == ["2"]
    assert list(experiment.get_runs(tags={"even": "x"})) == []
    assert len(list(experiment.get_runs(include_children=True))) == 10
    assert list(experiment.get_runs(type="azureml.scriptrun")) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {}, {"count": 0}, {"count": 101}, {"count": "5"}, {"count": 2, "tag_key": "a", "tag_values": [1]},
        {"tag_key": "a"}, {"tag_values": [1]},
    ],
    ids=repr,
)  # fmt: skip
def test_invalid_children_are_refused(run: Run, wrong: dict) -> None:
    """B12.81."""
    with pytest.raises(UserErrorException):
        run.create_children(**wrong)
    assert list(run.get_children()) == []
    run.complete()


def test_children_by_tag_values_and_their_generations(run: Run) -> None:
    """B12.81, B10.66."""
    children = run.create_children(tag_key="fold", tag_values=[1, 2, 3])
    assert [child.get_tags() for child in children] == [{"fold": "1"}, {"fold": "2"}, {"fold": "3"}]
    assert {child.get_status() for child in children} == {"Running"}
    grandchild = children[0].child_run("deep")
    assert grandchild.parent == children[0]
    assert grandchild not in list(run.get_children())
    assert grandchild in list(run.get_children(recursive=True))
    grandchild.log("x", 1)
    assert run.get_metrics(recursive=True)[grandchild.id] == {"x": 1}
    for member in (grandchild, *children, run):
        member.complete()


def test_repr_and_html_match_sdk_v1(workspace: Workspace, experiment: Experiment, run: Run) -> None:
    """B8.50."""
    lines = str(run).split("\n")
    assert lines == [f"Run(Experiment: {experiment.name},", f"Id: {run.id},", "Type: None,", "Status: Running)"]
    assert "<table" in run._repr_html_()
    assert run.id in run._repr_html_()
    assert str(experiment) == f"Experiment(Name: {experiment.name},\nWorkspace: {workspace.name})"
    run.complete()
