"""Runs of the SDK v1: what their classes are, what is streamed, what else could be asked of them."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runyard import (
    AmlCompute,
    ComputeTarget,
    Environment,
    Estimator,
    Experiment,
    Gloo,
    PyTorch,
    Run,
    RunConfiguration,
    ScriptRunConfig,
    Workspace,
)
from runyard.errors import (
    ActivityFailedException,
    ComputeTargetException,
    HyperDriveConfigException,
    HyperDriveException,
    ModelNotFoundException,
    RunEnvironmentException,
    RunyardException,
    TrainingException,
    UserErrorException,
    WebserviceException,
)
from runyard.hyperdrive import HyperDriveConfig, HyperDriveRun, PrimaryMetricGoal, RandomParameterSampling, choice
from runyard.sdk.azureml.telemetry import set_diagnostics_collection
from runyard.sdk.run.listing import RunListing
from runyard.sdk.run.script_run import ScriptRun
from runyard.sdk.training.chainer import Chainer
from support import with_this_python


def test_the_config_determines_the_class_of_the_run(
    experiment: Experiment, project: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """B8.48, B8.49, B8.53, B13.84, B13.93: a script gives a ScriptRun, a sweep a HyperDriveRun, here too."""
    script = "import sys\nfrom azureml.core import Run\nRun.get_context().log('lr', float(sys.argv[-1]))\nprint(1)"
    config = with_this_python(project(train=script), arguments=["--lr", 1])
    run = experiment.submit(config)
    assert type(run) is ScriptRun
    assert re.fullmatch(rf"{experiment.name}_\d+_[0-9a-f]{{8}}", run.id)
    run.wait_for_completion(show_output=True)
    output = capsys.readouterr().out
    assert output.startswith(f"RunId: {run.id}\nWeb View: {run.get_portal_url()}\n")
    assert "\n\nStreaming azureml-logs/70_driver_log.txt\n" + "=" * 40 + "\n\n" in output
    assert f"Execution Summary\n=================\nRunId: {run.id}\nWeb View: {run.portal_url}\n" in output
    sweep = experiment.submit(
        HyperDriveConfig(
            run_config=config,
            hyperparameter_sampling=RandomParameterSampling({"lr": choice(1, 2)}),
            primary_metric_name="lr",
            primary_metric_goal=PrimaryMetricGoal.MAXIMIZE,
            max_total_runs=2,
        )
    )
    assert type(sweep) is HyperDriveRun
    assert re.fullmatch(r"HD_[0-9a-f-]{36}", sweep.id)
    sweep.wait_for_completion(show_output=True)
    assert "Streaming azureml-logs/hyperdrive.txt\n" in capsys.readouterr().out
    assert {re.sub(r"^HD_[0-9a-f-]{36}_", "", child.id) for child in sweep.get_children()} == {"0", "1"}
    assert sweep.get_diagnostics()["failed"] == {}


def test_a_sweep_cannot_be_marked_as_failed(experiment: Experiment, project: Callable[..., Path]) -> None:
    """B8.54"""
    sweep = experiment.submit(
        HyperDriveConfig(
            run_config=with_this_python(project(train="from azureml.core import Run\nRun.get_context().log('m', 1)")),
            hyperparameter_sampling=RandomParameterSampling({"lr": choice(1)}),
            primary_metric_name="m",
            primary_metric_goal=PrimaryMetricGoal.MAXIMIZE,
            max_total_runs=1,
        )
    )
    with pytest.raises(HyperDriveException, match="cannot be marked as failed"):
        sweep.fail()
    sweep.wait_for_completion()


def test_nodes_of_one_run_share_one_folder(
    workspace: Workspace, experiment: Experiment, project: Callable[..., Path]
) -> None:
    """B6.35: a worker waits for a file that another one, on another node, writes below outputs."""
    script = """
        import os, time
        from azureml.core import Run
        there = 'outputs/MNIST/ready'
        if os.environ['RANK'] == '0':
            os.makedirs(os.path.dirname(there), exist_ok=True)
            open(there, 'w').close()
        ends = time.monotonic() + 60
        while not os.path.exists(there) and time.monotonic() < ends:
            time.sleep(0.01)
        Run.get_context().log('seen', int(os.path.exists(there)))
    """
    cluster = ComputeTarget.create(workspace, "one-folder", AmlCompute.provisioning_configuration(max_nodes=2))
    estimator = PyTorch(
        project(train=textwrap.dedent(script)),
        compute_target=cluster,
        entry_script="train.py",
        node_count=2,
        distributed_training=Gloo(),
        user_managed=True,
    )
    run = experiment.submit(estimator)
    run.wait_for_completion()
    assert run.get_metrics() == {"seen": [1, 1]}
    assert "outputs/MNIST/ready" in run.get_file_names()
    cluster.delete()


def test_a_run_resumes_from_the_outputs_of_another(experiment: Experiment, project: Callable[..., Path]) -> None:
    """B6.36: --resume-from is the folder of the earlier run's outputs, which a variable holds too."""
    script = """
        import argparse, os, pathlib
        from azureml.core import Run
        parser = argparse.ArgumentParser()
        parser.add_argument('--resume-from')
        folder = parser.parse_args().resume_from
        assert folder == os.environ.get('AZUREML_DATAREFERENCE_MODEL_LOCATION')
        epoch = int(pathlib.Path(folder, 'model', 'epoch').read_text()) if folder else 0
        os.makedirs('outputs/model')
        pathlib.Path('outputs/model/epoch').write_text(str(epoch + 1))
        Run.get_context().log('epoch', epoch + 1)
    """
    folder = project(train=textwrap.dedent(script))
    settings = {"compute_target": "local", "entry_script": "train.py", "user_managed": True}
    first = experiment.submit(Estimator(folder, **settings))
    first.wait_for_completion()
    outputs = first._get_outputs_datapath()
    second = experiment.submit(Estimator(folder, resume_from=outputs, **settings))
    second.wait_for_completion()
    assert (first.get_metrics(), second.get_metrics()) == ({"epoch": 1}, {"epoch": 2})
    named = ScriptRunConfig(folder, script="train.py", arguments=["--x", 1], resume_from=outputs).to_spec()
    assert named.arguments == ("--x", "1", "--resume-from", "$AZUREML_DATAREFERENCE_MODEL_LOCATION")
    with pytest.raises(UserErrorException, match="resume_from must be a DataPath"):
        Estimator(folder, resume_from="outputs", **settings)


def test_other_members_of_a_run_work(
    workspace: Workspace, experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = experiment.start_logging(snapshot_directory=None)
    run.display_name, run.description = "the best one", "why it is"
    reopened = Run.get(workspace, run.id)
    assert (reopened.display_name, reopened.description, reopened.name) == ("the best one", "why it is", "the best one")
    assert run.get_detailed_status() == {"status": "Running", "details": None}
    assert run.identity == f"{experiment.name}#{run.id}"
    assert workspace.get_run(run.id) == run == next(Run.list(experiment))
    assert run.portal_url == run.get_portal_url()
    with pytest.raises(UserErrorException, match="has no snapshot"):
        run.get_snapshot_id()
    monkeypatch.setenv("MY_SECRET", "s3")
    assert run.get_secrets(["MY_SECRET"]) == {"MY_SECRET": "s3"}
    with pytest.raises(UserErrorException, match="no secret 'OTHER'") as caught:
        run.get_secret("OTHER")
    assert "environment_variables" in caught.value.hint
    run.complete()


def test_all_logs_of_a_run_are_downloaded(experiment: Experiment, project: Callable[..., Path], tmp_path: Path) -> None:
    run = experiment.submit(with_this_python(project(train="print('a line')")))
    run.wait_for_completion()
    written = run.get_all_logs(destination=str(tmp_path / "logs"))
    assert [Path(path).read_text() for path in written if path.endswith("70_driver_log.txt")] == ["a line\n"]


def test_a_custom_run_type_is_opened_by_its_factory(
    workspace: Workspace, experiment: Experiment, project: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Mine(ScriptRun):
        pass

    monkeypatch.setattr(RunListing, "_factories", {})
    Run.add_type_provider("azureml.scriptrun", lambda owner, view: Mine(owner, view["run_id"], _view=view))
    run = experiment.submit(with_this_python(project(train="print(1)")))
    run.wait_for_completion()
    assert type(Run.get(workspace, run.id)) is Mine


def test_an_environment_and_a_run_configuration_round_trip_as_files(tmp_path: Path) -> None:
    environment = Environment("kept")
    environment.python.conda_dependencies.add_pip_package("numpy")
    environment.environment_variables = {"A": "1"}
    environment.save_to_directory(tmp_path / "env")
    with pytest.raises(UserErrorException, match="exists already"):
        environment.save_to_directory(tmp_path / "env")
    assert Environment.load_from_directory(tmp_path / "env").to_definition() == environment.to_definition()
    config = RunConfiguration("train.py", ["--lr", "0.1"], framework="Python")
    config.environment, config.node_count, config.target = environment, 2, "cluster"
    config.save(tmp_path, "big")
    assert (tmp_path / ".azureml" / "big.runconfig").is_file()
    loaded = RunConfiguration.load(tmp_path, "big")
    assert (loaded.script, loaded.arguments, loaded.node_count) == ("train.py", ["--lr", "0.1"], 2)
    assert (loaded.target, loaded.environment.to_definition()) == ("cluster", environment.to_definition())
    old = "script: train.py\ntarget: local\nnodeCount: 1\nenvironment:\n  name: e\n  docker: {enabled: true}\n"
    (tmp_path / "old.runconfig").write_text(old)
    assert RunConfiguration.load(tmp_path / "old.runconfig").environment.docker.enabled is True
    RunConfiguration.delete(tmp_path, "big")
    with pytest.raises(UserErrorException, match="no run configuration 'big'"):
        RunConfiguration.load(tmp_path, "big")


def test_chainer_needs_an_existing_installation(project: Callable[..., Path]) -> None:
    folder = project(train="print(1)")
    with pytest.raises(TrainingException, match="Chainer cannot be installed"):
        Chainer(folder, compute_target="local", entry_script="train.py").to_spec()
    mine = Chainer(folder, compute_target="local", entry_script="train.py", user_managed=True)
    assert mine.to_spec().script == "train.py"
    assert Chainer.get_supported_versions() == ["5.1.0", "7.0.0"]
    with pytest.raises(TrainingException, match="does not work with Chainer"):
        Chainer(folder, compute_target="local", node_count=2, distributed_training=_nccl())


def _nccl() -> Any:
    from runyard import Nccl

    with pytest.raises(TrainingException, match="Nccl does not work with TensorFlow"):
        Nccl().validate("TensorFlow")
    return Nccl()


def test_telemetry_is_one_line_and_nothing_is_sent(capsys: pytest.CaptureFixture[str]) -> None:
    """B15.107"""
    set_diagnostics_collection(send_diagnostics=True)
    assert capsys.readouterr().out.count("\n") == 1


def test_errors_share_a_base_and_print_in_the_format_of_the_sdk_v1(monkeypatch: pytest.MonkeyPatch) -> None:
    """B16.109: message, inner_exception, and a text of several lines once the names of the SDK v1 are in use."""
    import azureml.exceptions

    assert azureml.exceptions.AzureMLException is RunyardException
    inner = ValueError("inside")
    error = ComputeTargetException("no cluster", hint="make one", inner_exception=inner)
    assert (error.message, error.inner_exception) == ("no cluster", inner)
    monkeypatch.setattr(RunyardException, "format_as_v1", False)
    assert str(error) == "no cluster\n\nhint: make one"
    monkeypatch.setattr(RunyardException, "format_as_v1", True)
    assert str(error).splitlines()[:5] == [
        "ComputeTargetException:",
        "\tMessage: no cluster",
        "\tHint: make one",
        "\tInnerException inside",
        "\tErrorResponse ",
    ]
    assert '"message": "no cluster"' in str(error)
    assert RunEnvironmentException().message
    assert ActivityFailedException(error_details={"message": "it failed"}).message == "it failed"
    assert issubclass(HyperDriveConfigException, HyperDriveException)
    assert not issubclass(ModelNotFoundException, WebserviceException)


def test_an_estimator_can_be_star_imported(project: Callable[..., Path]) -> None:
    names: dict[str, Any] = {}
    exec("from azureml.train.estimator import *", names)
    assert names["Estimator"] is Estimator
