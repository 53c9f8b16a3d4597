"""Datasets: created, registered, used as inputs of runs, and found in their lineage."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli_support import CommandLine
from runyard import AmlCompute, Dataset, Experiment, Run, ScriptRunConfig, Workspace
from runyard.errors import ExperimentExecutionException, UserErrorException
from runyard.sdk.data.factory import DataType
from support import eventually, with_this_python

pytestmark = pytest.mark.real
_numbers = itertools.count(1)


@pytest.fixture
def folder_name(workspace: Workspace) -> str:
    """A folder of the default datastore that no other test has."""
    return f"place-{next(_numbers)}"


@pytest.fixture
def fill(workspace: Workspace, folder_name: str, tmp_path: Path) -> Callable[..., Any]:
    """`fill({'train/a.txt': 'A'})` puts these files there; returns the datastore."""

    def put(files: dict[str, str], below: str = "") -> Any:
        folder = tmp_path / f"files-{next(_numbers)}"
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        store = workspace.get_default_datastore()
        store.upload(str(folder), f"{folder_name}{below}", overwrite=True, show_progress=False)
        return store

    return put


def wait(run: Run) -> dict[str, Any]:
    return run.wait_for_completion()


def metrics(run: Run) -> dict[str, Any]:
    return run.get_metrics()


READING = """
import json, os, sys
from pathlib import Path
from runyard import Run

run = Run.get_context()
given = Path(run.input_datasets["letters"])
assert str(given) == sys.argv[1] == os.environ["letters"] == os.environ["AZUREML_DATAREFERENCE_letters"]
files = [given] if given.is_file() else sorted(p for p in given.rglob("*") if p.is_file())
run.log("content", " ".join(path.read_text() for path in files))
run.log("names", " ".join(given.name if given.is_file() else p.relative_to(given).as_posix() for p in files))
"""


def test_a_mounted_dataset_is_a_path_for_the_script_and_recorded_with_the_run(
    workspace: Workspace, experiment: Experiment, project: Any, fill: Any, folder_name: str
) -> None:
    """B4.22."""
    store = fill({"train/a.txt": "A", "b.txt": "B"})
    dataset = Dataset.File.from_files((store, f"{folder_name}/")).register(
        workspace, f"letters of {folder_name}", tags={"x": 1}
    )
    config = with_this_python(project(train=READING), arguments=[dataset.as_named_input("letters").as_mount()])
    run = experiment.submit(config)
    details = wait(run)
    assert metrics(run) == {"content": "B A", "names": "b.txt train/a.txt"}
    assert details["runDefinition"]["arguments"] == ["DatasetConsumptionConfig:letters"]
    (use,) = details["inputDatasets"]
    assert use["dataset"] == dataset
    assert use["digest"] == dataset.digest
    assert use["consumptionDetails"]["mechanism"] == "Mount"
    assert run.input_datasets["letters"].to_path() == ["/b.txt", "/train/a.txt"]


def test_a_downloaded_subset_is_writable_by_the_run(
    experiment: Experiment, project: Any, fill: Any, folder_name: str
) -> None:
    store = fill({"a.txt": "A", "b.txt": "B", "c.csv": "C"})
    dataset = Dataset.File.from_files((store, f"{folder_name}/*.txt")).skip(1)
    script = READING + "\n(given / 'b.txt').write_text('mine')\n(given / 'new').write_text('mine')\n"
    config = with_this_python(project(train=script), arguments=[dataset.as_named_input("letters").as_download()])
    run = experiment.submit(config)
    wait(run)
    assert metrics(run) == {"content": "B", "names": "b.txt"}
    copies = Path(config.source_directory) / "copies"
    assert dataset.download(str(copies)) == [str(copies / "b.txt")]
    assert (copies / "b.txt").read_text() == "B"
    assert dataset.to_path() == ["/b.txt"]


def test_a_dataset_of_one_file_is_passed_as_that_file(
    experiment: Experiment, project: Any, fill: Any, folder_name: str
) -> None:
    """B4.22."""
    store = fill({"deep/text8.zip": "words"})
    dataset = Dataset.File.from_files(path=[(store, f"{folder_name}/deep/text8.zip")])
    for use in (dataset.as_named_input("letters").as_mount(), dataset.as_named_input("letters").as_download()):
        run = experiment.submit(with_this_python(project(train=READING), arguments=[use]))
        wait(run)
        assert metrics(run) == {"content": "words", "names": "text8.zip"}


def test_a_rerun_reports_whether_the_data_has_changed(
    workspace: Workspace, home: Path, experiment: Experiment, project: Any, fill: Any, folder_name: str, tmp_path: Path
) -> None:
    store = fill({"a.txt": "A"})
    use = Dataset.File.from_files((store, folder_name)).as_named_input("letters").as_mount()
    first = experiment.submit(with_this_python(project(train=READING), arguments=[use]))
    wait(first)
    command = CommandLine(home, tmp_path)
    try:
        same = command("rerun", first.id, "--detach").text.strip()
        wait(Run(experiment, same))
        assert f"same data as {first.id}" in command("show", same).text
        fill({"a.txt": "Z"})
        other = command("rerun", first.id, "--detach").text.strip()
        wait(Run(experiment, other))
        printed = command("show", other).text
    finally:
        command.close()
    beside = [workspace.connection.get("/api/diff/data", a=first.id, b=run)[0]["same"] for run in (same, other)]
    assert beside == [True, False]
    assert f"different data than {first.id}" in printed
    assert f"differs from that of run {first.id}" in printed
    assert metrics(Run(experiment, other))["content"] == "Z"


def test_data_that_changes_while_a_run_waits_is_reported(
    workspace: Workspace, experiment: Experiment, project: Any, fill: Any, folder_name: str, tmp_path: Path
) -> None:
    store, gate = fill({"a.txt": "A"}), tmp_path / "gate"
    use = Dataset.File.from_files((store, folder_name)).as_named_input("letters").as_mount()
    cluster = AmlCompute.create(
        workspace, f"one-node-{folder_name}", AmlCompute.provisioning_configuration(vm_size="any", max_nodes=1)
    )
    script = f"import os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)\n" + READING
    config = with_this_python(project(train=script), arguments=[use])
    config.run_config.target = cluster.name
    runs = [experiment.submit(config)]
    eventually(lambda: runs[0].get_status() == "Running", "one runs", 60)
    runs.append(experiment.submit(config))
    eventually(lambda: runs[1].get_status() == "Queued", "the other waits", 60)
    fill({"a.txt": "Z"})
    gate.touch()
    first, second = (wait(run) for run in runs)
    assert "warnings" not in first
    assert "has changed since the run was submitted" in second["warnings"][0]["message"]
    assert metrics(runs[1])["content"] == "Z"
    cluster.delete()


def test_a_table_is_read_in_the_script_as_defined(
    experiment: Experiment, project: Any, fill: Any, folder_name: str
) -> None:
    store = fill({"2019.csv": "age;name\n7;x\n8;y\n", "2020.csv": "age;name\n9;z\n"})
    table = Dataset.Tabular.from_delimited_files((store, f"{folder_name}/*.csv"), separator=";").keep_columns("age")
    frame = table.to_pandas_dataframe()
    assert frame["age"].tolist() == [7, 8, 9]
    script = """
from runyard import Run
run = Run.get_context()
frame = run.input_datasets["table"].skip(1).to_pandas_dataframe()
run.log("sum", int(frame["age"].sum()))
run.log("columns", " ".join(frame.columns))
"""
    config = with_this_python(project(train=script), arguments=["--table", table.as_named_input("table")])
    run = experiment.submit(config)
    wait(run)
    assert metrics(run) == {"sum": 17, "columns": "age"}


def test_lineage_goes_from_data_over_runs_to_models(
    workspace: Workspace, home: Path, experiment: Experiment, project: Any, fill: Any, folder_name: str, tmp_path: Path
) -> None:
    store = fill({"a.txt": "A"})
    name = f"lineage-{folder_name}"
    before = Dataset.File.from_files((store, folder_name))
    script = READING + "\nPath('outputs/model.pt').write_text('w')\n"
    run = experiment.submit(
        with_this_python(project(train=script), arguments=[before.as_named_input("letters").as_mount()])
    )
    wait(run)
    dataset = before.register(workspace, name)  # registered after it was used: its content is the same
    model = run.register_model(model_name=f"model-{folder_name}", model_path="outputs/model.pt")
    command = CommandLine(home, tmp_path)
    try:
        lineage = json.loads(command("lineage", name, "--json").out)
        printed = command("lineage", f"{model.name}:{model.version}").text
    finally:
        command.close()
    edges = {(edge["source"], edge["kind"], edge["target"]) for edge in lineage["edges"]}
    assert (f"dataset:{dataset.id}", "used", f"run:{run.id}") in edges
    assert (f"run:{run.id}", "registered", f"model:{model.name}:{model.version}") in edges
    assert f"produced model {model.name}:{model.version}" in printed
    with pytest.raises(UserErrorException, match="no dataset 'nothing'"):
        workspace.connection.get("/api/lineage", dataset="nothing")


def test_the_command_line_registers_data_and_passes_it_to_a_script(
    home: Path, fill: Any, folder_name: str, tmp_path: Path
) -> None:
    fill({"a.txt": "A", "b.csv": "B"})
    command = CommandLine(home, tmp_path)
    try:
        command.script("look.py", "import os, sys; print(*sorted(os.listdir(sys.argv[1])))")
        registered = command(
            "datasets", "register", folder_name, f"workspaceblobstore/{folder_name}/*.txt", "--tag", "kind=letters"
        )
        assert registered.text.startswith(f"{folder_name}:1  1 file, 1 B"), registered.err
        assert command("run", "--input", f"letters={folder_name}:1", "look.py", "$letters").text == "a.txt\n"
        job = f"script: look.py\narguments: [$letters]\ninputs: {{letters: {{dataset: {folder_name}, mode: download}}}}"
        command.script("job.yaml", job)
        assert command("submit", "--follow", "job.yaml").text == "a.txt\n"
        assert "letters  download  unchanged" in command("datasets", "show", folder_name).text
        assert command("datasets", "files", folder_name).text.split() == ["SIZE", "FILE", "1", "B", "a.txt"]
        wrong = command("run", "--input", "letters=nothing", "look.py")
        assert wrong.code == 1
        assert "no dataset 'nothing' is registered" in wrong.err
        refused = command("datasets", "remove", folder_name)
        assert refused.code == 1
        assert f"unregistering {folder_name} (1 version) requires confirmation\n\nhint: add --yes" in refused.err
        command("datasets", "remove", folder_name, "--yes")
        assert folder_name not in command("datasets", "list").text
    finally:
        command.close()


def test_names_versions_and_labels(workspace: Workspace, fill: Any, folder_name: str) -> None:
    """B4.21."""
    store = fill({"a.txt": "A"})
    dataset = Dataset.File.from_files((store, folder_name))
    first = dataset.register(workspace, folder_name, description="letters", tags={"size": "small"})
    assert (first.name, first.version, first.description) == (folder_name, 1, "letters")
    with pytest.raises(UserErrorException, match="already registered, in version 1"):
        dataset.register(workspace, folder_name)
    assert dataset.register(workspace, folder_name, create_new_version=True).version == 1  # nothing about it is new
    fill({"b.txt": "B"})
    second = dataset.register(workspace, folder_name, create_new_version=True)
    assert second.version == 2
    assert Dataset.get_by_name(workspace, folder_name) == second
    assert Dataset.get_by_name(workspace, folder_name, version=1) == first
    assert Dataset.get_by_id(workspace, first.id) == first
    assert Dataset.get_all(workspace)[folder_name] == second == workspace.datasets[folder_name]
    second.add_tags({"checked": "yes"}).update(description="more letters")
    again = Dataset.get_by_name(workspace, folder_name)
    assert (again.tags, again.description) == ({"checked": "yes"}, "more letters")
    assert again.remove_tags(["checked"]).tags == {}
    second.unregister_all_versions()
    with pytest.raises(UserErrorException, match="no dataset"):
        Dataset.get_by_name(workspace, folder_name)
    assert Dataset.get_by_id(workspace, first.id).name is None


def test_parts_copies_and_mounts(fill: Any, folder_name: str, tmp_path: Path) -> None:
    store = fill({f"{letter}.txt": letter for letter in "abcdefgh"})
    dataset = Dataset.File.from_files((store, folder_name))
    assert dataset.take(2).to_path() == ["/a.txt", "/b.txt"]
    assert dataset.skip(6).to_path() == ["/g.txt", "/h.txt"]
    first, second = dataset.random_split(0.5, seed=3)
    assert sorted(first.to_path() + second.to_path()) == dataset.to_path()
    with dataset.take(1).mount(str(tmp_path / "here")) as mounted:
        assert [path.name for path in Path(mounted.mount_point).iterdir()] == ["a.txt"]
    assert not (tmp_path / "here").exists()
    target = tmp_path / "copies"
    assert dataset.take(1).download(str(target)) == [str(target / "a.txt")]
    with pytest.raises(UserErrorException, match="exists already"):
        dataset.take(1).download(str(target))


def test_a_folder_of_this_machine_becomes_a_dataset(workspace: Workspace, folder_name: str, tmp_path: Path) -> None:
    for name in ("keep/a.csv", "leave/b.txt"):
        (tmp_path / "mine" / name).parent.mkdir(parents=True)
        (tmp_path / "mine" / name).write_text(name)
    store = workspace.get_default_datastore()
    dataset = Dataset.File.upload_directory(
        str(tmp_path / "mine"), (store, folder_name), pattern="*.csv", show_progress=False
    )
    assert dataset.to_path() == ["/keep/a.csv"]
    with pytest.raises(UserErrorException, match="not a folder"):
        Dataset.File.upload_directory(str(tmp_path / "none"), (store, folder_name))


def test_types_headers_and_other_formats_of_tables(workspace: Workspace, fill: Any, folder_name: str) -> None:
    store = fill(
        {"a/1.csv": "x,when\n1,2020-01-02\n2,?\n", "b/1.csv": "1,2\n3,4\n", "c/1.jsonl": '{"x": 1}\n{"x": 2}\n'}
    )
    types = {"x": DataType.to_string(), "when": DataType.to_datetime()}
    frame = Dataset.Tabular.from_delimited_files(
        (store, f"{folder_name}/a"), set_column_types=types
    ).to_pandas_dataframe()
    assert frame["x"].tolist() == ["1", "2"]
    assert frame["when"].isna().tolist() == [False, True]
    bare = Dataset.Tabular.from_delimited_files((store, f"{folder_name}/b"), header=False, include_path=True)
    assert bare.to_pandas_dataframe().to_dict("list") == {"Path": ["/1.csv"] * 2, "Column1": [1, 3], "Column2": [2, 4]}
    lines = Dataset.Tabular.from_json_lines_files((store, f"{folder_name}/c"))
    assert lines.to_pandas_dataframe()["x"].tolist() == [1, 2]
    dataset = Dataset.Tabular.register_pandas_dataframe(
        frame, (store, f"{folder_name}/d"), f"frame-{folder_name}", show_progress=False
    )
    assert Dataset.get_by_name(workspace, f"frame-{folder_name}").take(1).to_pandas_dataframe()["x"].tolist() == ["1"]
    assert dataset.version == 1
    with pytest.raises(UserErrorException, match="no column 'y'"):
        lines.keep_columns(["y"], validate=True)


def test_invalid_inputs_are_refused_before_anything_starts(
    workspace: Workspace, experiment: Experiment, project: Any, fill: Any, folder_name: str
) -> None:
    """B4.22."""
    store = fill({"a.csv": "x\n1\n"})
    dataset = Dataset.File.from_files((store, folder_name))
    folder = project(train="print(1)")
    with pytest.raises(UserErrorException, match="cannot be passed directly as an argument or input"):
        ScriptRunConfig(folder, script="train.py", arguments=["--data", dataset])
    with pytest.raises(UserErrorException, match="'my data' cannot be the name of an input"):
        dataset.as_named_input("my data")
    with pytest.raises(UserErrorException, match="cannot be mounted or downloaded"):
        Dataset.Tabular.from_delimited_files((store, folder_name)).as_named_input("x").as_mount()
    with pytest.raises(UserErrorException, match="is a path on this machine"):
        Dataset.File.from_files("./data")
    with pytest.raises(UserErrorException, match="do not support s3: URLs"):
        Dataset.File.from_files("s3://bucket/data")
    with pytest.raises(UserErrorException, match="no files at"):
        Dataset.File.from_files((store, f"{folder_name}/none/"))
    missing = Dataset.File.from_files((store, f"{folder_name}/none/"), validate=False)
    with pytest.raises(UserErrorException, match="no files at"):
        experiment.submit(with_this_python(folder, arguments=[missing.as_named_input("x").as_mount()]))
    twice = [dataset.as_named_input("x").as_mount(), dataset.take(1).as_named_input("x").as_mount()]
    with pytest.raises((UserErrorException, ExperimentExecutionException), match="the name 'x'"):
        experiment.submit(with_this_python(folder, arguments=twice))
    with pytest.raises(UserErrorException, match="percentage must be a number between 0 and 1"):
        dataset.random_split(80)
    assert list(experiment.get_runs()) == []
