from __future__ import annotations

from typing import Any

import pytest

from runyard.errors import RunConfigurationException, UserErrorException
from runyard.sdk.environment.conda_dependencies import CondaDependencies
from runyard.sdk.environment.environment import Environment
from runyard.sdk.training.run_configuration import DEFAULT_CPU_IMAGE, DataReferenceConfiguration, RunConfiguration


def test_the_defaults_are_those_of_the_sdk_v1() -> None:
    """B5.23."""
    config = RunConfiguration()
    assert (config.target, config.framework, config.communicator) == ("local", "Python", "None")
    assert (config.node_count, config.arguments, config.data_references) == (1, [], {})
    assert config.history.directories_to_watch == ["logs"]
    assert config.history.output_collection is True
    assert config.environment.name == "default-environment"
    assert config.environment.python.user_managed_dependencies is False
    assert (config.script, config.max_run_duration_seconds, config.environment_variables) == (None, None, {})
    assert config.mpi.process_count_per_node == config.tensorflow.worker_count == 1


def test_two_configurations_share_nothing() -> None:
    first, second = RunConfiguration(), RunConfiguration()
    first.arguments.append("x")
    first.history.directories_to_watch.append("x")
    first.data_references["x"] = 1
    assert (second.arguments, second.history.directories_to_watch, second.data_references) == ([], ["logs"], {})


@pytest.mark.parametrize(
    "path",
    [
        *("", "environment", "environment.python", "environment.docker", "amlcompute", "history", "docker", "mpi"),
        *("tensorflow", "pytorch", "environment.docker.base_image_registry"),
    ],
)
def test_a_setting_that_does_not_exist_is_an_attribute_error_at_any_level(path: str) -> None:
    """B5.23."""
    section: Any = RunConfiguration()
    for name in filter(None, path.split(".")):
        section = getattr(section, name)
    with pytest.raises(AttributeError, match="has no setting 'foo'"):
        section.foo = 1


def test_the_error_names_the_nearest_setting() -> None:
    config: Any = RunConfiguration()
    with pytest.raises(AttributeError, match="did you mean 'node_count'"):
        config.nodecount = 2


def test_a_target_is_stored_by_its_name() -> None:
    """B5.24."""

    class Target:
        name = "box"

    config = RunConfiguration()
    config.target = Target()  # type: ignore[assignment]
    assert config.target == "box"
    with pytest.raises(RunConfigurationException, match="target must be a compute target or its name"):
        config.target = 3  # type: ignore[assignment]


def test_settings_of_notebooks_exist() -> None:
    """B5.24."""
    config = RunConfiguration(framework="python", conda_dependencies=CondaDependencies.create(pip_packages=["numpy"]))
    assert config.environment.python.conda_dependencies.pip_packages == ["numpy"]
    config.amlcompute.vm_size = "size"
    config.environment.docker.enabled = True
    config.environment.docker.base_image = DEFAULT_CPU_IMAGE
    config.environment.python.user_managed_dependencies = True
    config.environment.python.conda_dependencies = CondaDependencies()
    config.environment = Environment("other")
    config.data_references = {"store": DataReferenceConfiguration(datastore_name="store", mode="Download")}
    assert config.data_references["store"].mode == "download"


def test_auto_prepare_environment_only_warns(caplog: pytest.LogCaptureFixture) -> None:
    """B5.24."""
    config = RunConfiguration()
    config.auto_prepare_environment = False
    assert config.auto_prepare_environment is True
    assert "auto_prepare_environment has no effect" in caplog.text


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("node_count", "2"),
        ("node_count", True),
        ("environment", "name"),
        ("max_run_duration_seconds", "1h"),
        ("script", 3),
    ],
)
def test_a_setting_of_the_wrong_type_is_named(setting: str, value: Any) -> None:
    with pytest.raises(UserErrorException, match=rf"RunConfiguration\.{setting} must be"):
        setattr(RunConfiguration(), setting, value)


def test_wrong_variables_arguments_and_modes_are_named() -> None:
    config = RunConfiguration()
    with pytest.raises(RunConfigurationException, match="environment_variables must be a dict"):
        config.environment_variables = ["A=1"]  # type: ignore[assignment]
    with pytest.raises(RunConfigurationException, match="arguments must be a list"):
        config.arguments = "--lr 1"  # type: ignore[assignment]
    with pytest.raises(UserErrorException, match="mode must be 'mount', 'download' or 'upload'"):
        DataReferenceConfiguration(mode="copy")


@pytest.mark.parametrize(
    ("setting", "value", "allowed"),
    [
        (
            "communicator",
            "OpenMpii",
            "'None', 'Mpi', 'IntelMpi', 'OpenMpi', 'Horovod', 'ParameterServer', 'Nccl', 'Gloo'",
        ),
        ("communicator", "Ncll", "'None', 'Mpi', "),
        ("communicator", "ParamServer", "'None', 'Mpi', "),
        ("communicator", 2, "'None', 'Mpi', "),
        ("framework", "Pyton", "'Python', 'PyTorch', 'TensorFlow', 'PySpark', 'CNTK'"),
    ],
)
def test_an_unknown_communicator_or_framework_is_refused(setting: str, value: Any, allowed: str) -> None:
    with pytest.raises(RunConfigurationException, match=f"{setting} must be one of {allowed}"):
        RunConfiguration(**{setting: value})
    with pytest.raises(RunConfigurationException, match=f"{setting} must be one of {allowed}"):
        setattr(RunConfiguration(), setting, value)


@pytest.mark.parametrize(
    ("setting", "value", "stored"),
    [
        *(("communicator", name, name) for name in ("none", "MPI", "intelmpi", "OpenMpi", "Horovod", "NCCL", "gloo")),
        *(("framework", name, name) for name in ("python", "PYTORCH", "TensorFlow", "PySpark", "cntk")),
        ("communicator", None, "None"),
        ("framework", None, "Python"),
    ],
)
def test_communicators_and_frameworks_ignore_case(setting: str, value: Any, stored: str) -> None:
    config = RunConfiguration(**{setting: value})
    assert getattr(config, setting) == stored
    setattr(config, setting, value)
    assert getattr(config, setting) == stored
