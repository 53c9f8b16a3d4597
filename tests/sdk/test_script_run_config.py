from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runyard import Experiment
from runyard.errors import (
    ExperimentExecutionException,
    RunConfigurationException,
    UserErrorException,
)
from runyard.sdk.environment.environment import Environment
from runyard.sdk.training.distributed import Mpi, MpiConfiguration, PyTorchConfiguration, TensorflowConfiguration
from runyard.sdk.training.run_configuration import DockerConfiguration, RunConfiguration
from runyard.sdk.training.script_run_config import ScriptRunConfig


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "other.py").write_text("")
    return tmp_path


def test_the_defaults_are_local_isolated_and_thirty_days(project: Path) -> None:
    """B5.26, B6.37."""
    spec = ScriptRunConfig(project, script="train.py").to_spec()
    assert (spec.target, spec.script, spec.arguments) == ("local", "train.py", ())
    assert spec.environment.name == "default-environment"
    assert (spec.environment.pip, spec.environment.user_managed) == ((), False)
    assert spec.max_run_duration_seconds == 2592000


def test_arguments_become_text(project: Path) -> None:
    config = ScriptRunConfig(project, "train.py", ["--lr", 0.1, "--flag", True, Path("data")])
    assert config.to_spec().arguments == ("--lr", "0.1", "--flag", "True", "data")


def test_changes_to_run_config_take_effect(project: Path) -> None:
    """B5.24."""
    config = ScriptRunConfig(project, script="train.py")
    config.run_config.environment = Environment("later")
    config.run_config.target = "box"
    spec = config.to_spec()
    assert (spec.environment.name, spec.target) == ("later", "box")


def test_with_a_run_config_other_parameters_are_ignored_with_a_warning(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """B5.26."""
    run_config = RunConfiguration()
    config = ScriptRunConfig(
        project, script="train.py", run_config=run_config, compute_target="box", environment=Environment("e")
    )
    assert config.run_config is run_config
    assert config.to_spec().target == "local"
    assert "ignored because run_config is set: compute_target, environment" in caplog.text


def test_script_and_arguments_override_the_run_config(project: Path) -> None:
    """B5.26."""
    run_config = RunConfiguration(script="other.py", arguments=["a"])
    inner = ScriptRunConfig(project, run_config=run_config).to_spec()
    assert (inner.script, inner.arguments) == ("other.py", ("a",))
    outer = ScriptRunConfig(project, script="train.py", arguments=["b"], run_config=run_config).to_spec()
    assert (outer.script, outer.arguments) == ("train.py", ("b",))


@pytest.mark.parametrize(
    ("job", "framework", "communicator", "nodes"),
    [
        (MpiConfiguration(2, 3), "Python", "IntelMpi", 3),
        (TensorflowConfiguration(2, 1), "TensorFlow", "ParameterServer", 2),
        (PyTorchConfiguration("Gloo", node_count=2), "PyTorch", "gloo", 2),
    ],
)
def test_a_distributed_job_is_stored_and_submitted(
    job: Any, framework: str, communicator: str, nodes: int, project: Path
) -> None:
    config = ScriptRunConfig(project, script="train.py", distributed_job_config=job)
    run_config = config.run_config
    assert (run_config.framework, run_config.communicator, run_config.node_count) == (framework, communicator, nodes)
    assert config.to_spec().resources.nodes == nodes


def test_an_uneven_process_count_is_refused(project: Path) -> None:
    job = PyTorchConfiguration("Gloo", process_count=3, node_count=2)
    with pytest.raises(RunConfigurationException, match="process_count=3 cannot be divided evenly among node_count=2"):
        ScriptRunConfig(project, script="train.py", distributed_job_config=job).to_spec()


def test_several_nodes_without_a_communicator_are_refused(project: Path) -> None:
    config = ScriptRunConfig(project, script="train.py")
    config.run_config.node_count = 2
    with pytest.raises(RunConfigurationException, match="node_count=2 needs a communicator"):
        config.to_spec()


def test_stall_detection_is_configurable(project: Path) -> None:
    config = ScriptRunConfig(project, script="train.py")
    assert config.to_spec().stall_after_s == 1800
    config.run_config.stall.after_s, config.run_config.stall.action = 60, "stop"
    spec = config.to_spec()
    assert (spec.stall_after_s, spec.stall_action) == (60, "stop")
    with pytest.raises(RunConfigurationException, match="action must be 'report' or 'stop'"):
        config.run_config.stall.action = "explode"


@pytest.mark.parametrize("job", [Mpi(), "mpi", 2])
def test_a_distributed_job_of_another_type_is_refused(job: Any) -> None:
    """B5.26."""
    with pytest.raises(RunConfigurationException, match="distributed_job_config must be one of MpiConfiguration"):
        ScriptRunConfig(".", script="train.py", distributed_job_config=job)


def test_pytorch_backends_ignore_case() -> None:
    """B5.26."""
    assert PyTorchConfiguration().communication_backend == "nccl"
    assert PyTorchConfiguration("GLOO").communication_backend == "gloo"
    with pytest.raises(RunConfigurationException, match="communication_backend must be 'Nccl' or 'Gloo', got 'mpi'"):
        PyTorchConfiguration("mpi")


@pytest.mark.parametrize("command", [["python", "train.py", "--lr", 1], "python3 train.py --lr 1"])
def test_a_command_that_starts_a_python_script_is_parsed(command: Any, project: Path) -> None:
    spec = ScriptRunConfig(project, command=command).to_spec()
    assert (spec.script, spec.arguments) == ("train.py", ("--lr", "1"))


@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("python train.py && echo done", "'&&'"),
        ("python train.py || true", "'[|][|]'"),
        ("python train.py; python other.py", "';'"),
        ("python train.py | tee log.txt", "'[|]'"),
        ("python train.py > outputs/log.txt", "'>'"),
        ("python train.py 2>&1", "'>'"),
        ("python train.py < data.txt", "'<'"),
        ("python train.py &", "'&'"),
        ("python train.py\npython other.py", "a second line"),
    ],
)
def test_a_command_with_shell_syntax_is_refused(command: str, part: str) -> None:
    with pytest.raises(RunConfigurationException, match=f"command has {part}, which only a shell") as caught:
        ScriptRunConfig(".", command=command)
    assert "put it into a Python script" in caught.value.hint


def test_a_command_with_an_open_quote_is_refused() -> None:
    with pytest.raises(RunConfigurationException, match="command cannot be parsed: No closing quotation"):
        ScriptRunConfig(".", command="python train.py --name 'x")


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        (
            'python train.py --text \'a && b; c\' --more "x > \\" y" a\\;b',
            ("--text", "a && b; c", "--more", 'x > " y', "a;b"),
        ),
        ("\n  python train.py \\\n    --lr 1\n", ("--lr", "1")),
        (["python", "train.py", "&&", "a\nb"], ("&&", "a\nb")),
        ("python -u train.py --lr 1", ("--lr", "1")),
    ],
)
def test_quoted_text_and_list_items_are_plain_arguments(
    command: Any, arguments: tuple[str, ...], project: Path
) -> None:
    spec = ScriptRunConfig(project, command=command).to_spec()
    assert (spec.script, spec.arguments) == ("train.py", arguments)


@pytest.mark.parametrize(
    ("version", "user_managed", "has"),
    [
        ("3.11", False, "Python 3.11"),
        (None, False, "no fixed version"),
        (None, True, r"Python 3\.\d+\.\d+"),
    ],
)
def test_a_command_with_another_python_version_is_refused(
    version: Any, user_managed: bool, has: str, project: Path
) -> None:
    config = ScriptRunConfig(project, command="python3.99 train.py")
    python = config.run_config.environment.python
    python.user_managed_dependencies = user_managed
    if version:
        python.conda_dependencies.set_python_version(version)
    with pytest.raises(RunConfigurationException, match=f"needs python3.99, and .* has {has}") as caught:
        config.to_spec()
    assert ("interpreter_path" if user_managed else "set_python_version('3.99')") in caught.value.hint


def test_a_command_with_the_python_of_the_environment_is_accepted(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = ScriptRunConfig(project, command="python3.11 train.py")
    config.run_config.environment.python.conda_dependencies.set_python_version("3.11")
    assert config.to_spec().environment.python == "3.11"
    config.run_config.environment.python.user_managed_dependencies = True
    config.run_config.environment.python.interpreter_path = config.command = "/opt/conda/bin/python3.9"
    config.command += " train.py"
    assert config.to_spec().script == "train.py"
    assert caplog.text == ""
    config.command = "/usr/bin/python train.py"
    config.to_spec()
    assert "the run uses the Python of its environment, not /usr/bin/python" in caplog.text


@pytest.mark.parametrize(
    "command", [["ls"], ["bash", "x.sh"], ["python", "-m", "x"], "python", "python2 train.py", "python-config train.py"]
)
def test_other_commands_are_refused(command: Any, project: Path) -> None:
    with pytest.raises(RunConfigurationException, match="only commands that start a Python script"):
        ScriptRunConfig(project, command=command).to_spec()


def test_a_command_excludes_a_script(project: Path) -> None:
    with pytest.raises(RunConfigurationException, match="command excludes script"):
        ScriptRunConfig(project, script="train.py", command=["python", "other.py"]).to_spec()


@pytest.mark.parametrize(
    ("parameters", "error", "text"),
    [
        ({"arguments": "--lr 1"}, RunConfigurationException, "arguments must be a list"),
        ({"arguments": [{}]}, RunConfigurationException, "arguments must be text, numbers"),
        ({"run_config": "x"}, RunConfigurationException, "run_config must be a RunConfiguration"),
        ({"environment": "x"}, RunConfigurationException, "environment must be an Environment"),
        ({"compute_target": 3}, RunConfigurationException, "target must be a compute target or its name"),
        ({"docker_runtime_config": "x"}, RunConfigurationException, "must be a DockerConfiguration"),
        ({"max_run_duration_seconds": -5}, RunConfigurationException, "must be at least 1"),
        ({"script": 3}, RunConfigurationException, "script must be a path"),
        ({"resume_from": "x"}, UserErrorException, "resume_from must be a DataPath"),
    ],
)
def test_a_wrong_type_is_one_error_that_names_the_parameter(parameters: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        ScriptRunConfig(".", **parameters)


def test_problems_on_disk_raise_an_execution_exception(project: Path) -> None:
    with pytest.raises(ExperimentExecutionException, match=r"no script 'trian\.py'") as caught:
        ScriptRunConfig(project, script="trian.py").to_spec()
    assert "did you mean 'train.py'?" in caught.value.hint
    with pytest.raises(ExperimentExecutionException, match="does not exist"):
        ScriptRunConfig(project / "absent", script="train.py").to_spec()


def test_overrides_are_refused_by_name(project: Path) -> None:
    config = ScriptRunConfig(project, script="train.py")
    with pytest.raises(ExperimentExecutionException, match="takes no 'script_params'"):
        Experiment("digits").submit(config, script_params={})


def test_a_transient_cluster_needs_a_size(project: Path) -> None:
    """B5.25: target 'amlcompute' is a cluster of amlcompute.vm_size, made for the run; without a size it is refused."""
    config = ScriptRunConfig(project, script="train.py", compute_target="amlcompute")
    with pytest.raises(ExperimentExecutionException, match="needs a size"):
        config.to_spec()
    config.run_config.amlcompute.vm_size = "STANDARD_D2_V2"
    assert config.to_spec().target == "amlcompute"


def test_spark_and_invalid_data_are_refused_at_submission(project: Path) -> None:
    config = ScriptRunConfig(project, script="train.py", run_config=RunConfiguration(framework="PySpark"))
    with pytest.raises(ExperimentExecutionException, match="Spark"):
        config.to_spec()
    config = ScriptRunConfig(project, script="train.py")
    config.run_config.data_references = {"images": object()}
    with pytest.raises(UserErrorException, match=r"data_references\['images'\] must be a DataReferenceConfiguration"):
        config.to_spec()


def test_docker_settings_of_the_run_override_the_environment(project: Path) -> None:
    environment = Environment("e")
    environment.docker.base_image = "team/image"
    environment.docker.shm_size = "1g"
    docker = DockerConfiguration(use_docker=True, shm_size="4g", arguments=["--privileged"])
    config = ScriptRunConfig(project, script="train.py", environment=environment, docker_runtime_config=docker)
    container = config.to_spec().environment.container
    assert container is not None
    assert (container.image, container.shm_size, container.arguments) == ("team/image", "4g", ("--privileged",))
