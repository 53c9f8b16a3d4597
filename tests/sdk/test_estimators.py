"""Estimators: what they accept, what they refuse, and the specification that they give."""

from __future__ import annotations

import dataclasses
import inspect
import json
import logging
import sys
import typing
from pathlib import Path
from typing import Any

import pytest

from runyard.errors import ExperimentExecutionException, TrainingException, UserErrorException
from runyard.sdk.environment.conda_dependencies import CondaDependencies
from runyard.sdk.environment.environment import Environment
from runyard.sdk.environment.sections import ContainerRegistry
from runyard.sdk.training.chainer import Chainer
from runyard.sdk.training.distributed import (
    Gloo,
    Mpi,
    MpiConfiguration,
    Nccl,
    ParameterServer,
    PyTorchConfiguration,
    TensorflowConfiguration,
)
from runyard.sdk.training.estimator import Estimator
from runyard.sdk.training.frameworks import PyTorch, SKLearn, TensorFlow
from runyard.spec import launch
from runyard.spec.environment import Framework
from runyard.spec.resources import Resources
from support import as_nobody

ALL = [Estimator, PyTorch, TensorFlow, SKLearn]
GPU_ABLE = [Estimator, PyTorch, TensorFlow]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "sub").mkdir(parents=True)
    (folder / "train.py").write_text("print('hello')\n")
    (folder / "sub" / "deep.py").write_text("")
    return folder


def local(kind: Any = Estimator, folder: Any = ".", **parameters: Any) -> Any:
    return kind(folder, **{"compute_target": "local", "entry_script": "train.py", **parameters})


class OtherTarget:
    name = "cluster"


# signatures


@pytest.mark.parametrize("kind", [*ALL, Chainer])
def test_the_signature_is_the_recorded_one(kind: Any) -> None:
    recorded = json.loads((Path(__file__).parent / "estimator_signatures.json").read_text(encoding="utf-8"))
    parameters = inspect.signature(kind).parameters
    assert recorded[kind.__name__] == [
        f"{p.kind.name.lower()} {p.name}" + ("" if p.default is p.empty else f" = {p.default!r}")
        for p in parameters.values()
    ]
    assert set(parameters) <= {*typing.get_type_hints(kind.__init__), "switches"}


def test_a_subclass_shows_its_own_signature() -> None:
    class Tuned(PyTorch):
        def __init__(self, lr: float) -> None:
            super().__init__(".", compute_target="local", script_params={"--lr": lr})

    assert list(inspect.signature(Tuned).parameters) == ["lr"]
    assert Tuned(0.5).run_config.arguments == ["--lr", 0.5]


# what a plain estimator gives


@pytest.mark.parametrize("kind", ALL)
def test_everything_but_the_folder_is_a_keyword(kind: Any) -> None:
    """B6.30."""
    with pytest.raises(TypeError):
        kind(".", "local")


@pytest.mark.parametrize("nothing", [None, ""])
def test_no_folder_means_the_current_one(nothing: Any) -> None:
    """B6.30."""
    assert local(folder=nothing).source_directory == "."


def test_a_plain_estimator_has_an_isolated_empty_environment(project: Path) -> None:
    spec = local(folder=project).to_spec()
    assert (spec.script, spec.arguments, spec.target) == ("train.py", (), "local")
    environment = spec.environment
    assert (environment.pip, environment.conda, environment.channels, environment.python) == ((), (), (), None)
    assert not environment.user_managed
    assert environment.frameworks == ()
    assert spec.max_run_duration_seconds is None


def test_a_compute_target_may_be_an_object_or_any_name(project: Path) -> None:
    assert local(folder=project, compute_target=OtherTarget()).to_spec().target == "cluster"
    assert local(folder=project, compute_target="gpu-box").to_spec().target == "gpu-box"


def test_packages_variables_and_duration_reach_the_specification(project: Path) -> None:
    """B6.37, B6.38."""
    spec = local(
        folder=project,
        pip_packages=["scikit-learn==1.9.1"],
        conda_packages=["scipy"],
        environment_variables={"A": 1},
        max_run_duration_seconds=60,
    ).to_spec()
    assert spec.environment.pip == ("scikit-learn==1.9.1",)
    assert spec.environment.conda == ("scipy",)
    assert spec.environment.channels == ("conda-forge",)
    assert spec.environment_variables == {"A": "1"}
    assert spec.max_run_duration_seconds == 60


@pytest.mark.parametrize("kind", GPU_ABLE)
def test_use_gpu_requests_gpu_packages_and_one_gpu(kind: Any, project: Path) -> None:
    spec = local(kind, project, use_gpu=True).to_spec()
    assert spec.environment.gpu
    assert spec.resources.gpus_per_process == 1
    assert not spec.resources.gpus_required
    assert local(kind, project).to_spec().resources.gpus_per_process == 0


def test_resources_override_use_gpu(project: Path) -> None:
    resources = Resources(cpus_per_process=4, gpus_per_process=2, memory_gb=8)
    requested = local(folder=project, use_gpu=True, resources=resources).to_spec().resources
    assert requested == dataclasses.replace(resources, gpus_required=True)


def test_resources_that_contradict_the_node_count_are_refused() -> None:
    with pytest.raises(TrainingException, match=r"resources\.nodes is 3, but node_count is 1"):
        local(resources=Resources(nodes=3))


def test_user_managed_uses_this_interpreter_without_the_framework(project: Path) -> None:
    environment = local(PyTorch, project, user_managed=True).to_spec().environment
    assert environment.user_managed
    assert environment.interpreter == sys.executable
    assert environment.frameworks == ()


def test_a_custom_image_becomes_a_container(project: Path) -> None:
    registry = ContainerRegistry()
    registry.address = "images.example"
    environment = (
        local(folder=project, custom_docker_image="team/image:1", image_registry_details=registry, shm_size="1g")
        .to_spec()
        .environment
    )
    assert environment.container is not None
    assert (environment.container.image, environment.container.registry) == ("team/image:1", "images.example")
    assert environment.container.shm_size == "1g"


def test_user_managed_in_an_image_uses_the_python_of_the_image(project: Path) -> None:
    spec = local(folder=project, custom_docker_image="team/image", user_managed=True).to_spec()
    assert spec.environment.interpreter == "python"


def test_run_config_and_conda_dependencies_can_be_changed_before_submitting(project: Path) -> None:
    """B6.39."""
    estimator = local(folder=project)
    estimator.conda_dependencies.add_pip_package("pandas")
    estimator.run_config.target = "box"
    spec = estimator.to_spec()
    assert (spec.environment.pip, spec.target) == (("pandas",), "box")
    with pytest.raises(AttributeError):
        estimator.run_config = None


def test_an_environment_definition_is_used_unchanged(project: Path) -> None:
    environment = Environment("mine")
    environment.python.conda_dependencies = CondaDependencies.create(pip_packages=["numpy"])
    estimator = local(TensorFlow, project, environment_definition=environment)
    assert estimator.run_config.environment is environment
    spec = estimator.to_spec()
    assert (spec.environment.name, spec.environment.pip, spec.environment.frameworks) == ("mine", ("numpy",), ())


def test_lint_options_are_accepted_and_unknown_parameters_are_not() -> None:
    local(PyTorch, _disable_validation=False, _show_lint_warnings=True)
    with pytest.raises(TypeError, match="no parameter 'entry_scirpt': did you mean 'entry_script'"):
        local(PyTorch, entry_scirpt="a.py")


# script_params


def test_script_params_become_arguments_in_their_order(project: Path) -> None:
    """B6.32."""
    estimator = local(
        folder=project,
        script_params={
            "--lr": 0.1,
            "--verbose": "",
            "--quiet": None,
            "--size": [3, 4],
            "--pair": ("a", 1),
            "--on": True,
        },
    )
    assert estimator.run_config.arguments == [
        *("--lr", 0.1, "--verbose", "--quiet", "--size", 3, 4, "--pair", "a", 1, "--on", True)
    ]
    assert estimator.to_spec().arguments == (
        *("--lr", "0.1", "--verbose", "--quiet", "--size", "3", "4", "--pair", "a", "1", "--on", "True"),
    )


def test_zero_false_and_paths_are_values_and_not_bare_flags(project: Path) -> None:
    """B6.32."""
    params = {"--seed": 0, "--off": False, "--data": Path("/data")}
    assert local(folder=project, script_params=params).to_spec().arguments == (
        *("--seed", "0", "--off", "False", "--data", "/data"),
    )


def test_a_data_object_becomes_its_placeholder(project: Path) -> None:
    """B6.32."""

    class Reference:
        def _as_argument(self) -> str:
            return "$DATA"

    estimator = local(folder=project, script_params={"--data": Reference()}, inputs=[Reference()])
    assert estimator.to_spec().arguments == ("--data", "$DATA")


@pytest.mark.parametrize("value", [["--lr", 1], "--lr 1", 3])
def test_script_params_that_are_not_a_dict_raise_attribute_error(value: Any) -> None:
    """B6.32."""
    with pytest.raises(AttributeError, match="script_params must be a dict"):
        local(script_params=value)


@pytest.mark.parametrize("value", [{"a": 1}, {1, 2}, b"x", object(), [["nested"]], [None]])
def test_script_params_values_of_other_kinds_are_named(value: Any) -> None:
    with pytest.raises(TrainingException, match=r"script_params\['--x'\] must be text, numbers"):
        local(script_params={"--x": value})


def test_script_params_are_overridden_for_one_submission(project: Path) -> None:
    """B6.34."""
    estimator = local(folder=project, script_params={"--lr": 1})
    assert estimator.to_spec(script_params={"--lr": 2}).arguments == ("--lr", "2")
    assert estimator.to_spec(script_params={}).arguments == ()
    assert estimator.to_spec().arguments == ("--lr", "1")


def test_any_other_override_is_refused_by_name(project: Path) -> None:
    """B6.34."""
    with pytest.raises(TrainingException, match="cannot override 'node_count'"):
        local(folder=project).to_spec(node_count=2)


# what raises what


@pytest.mark.parametrize("kind", ALL)
def test_neither_target_nor_size_is_refused(kind: Any) -> None:
    with pytest.raises(TrainingException, match="has no compute_target") as caught:
        kind(".", entry_script="train.py")
    assert "compute_target='local'" in caught.value.hint


@pytest.mark.parametrize("parameter", ["node_count", "process_count_per_node"])
@pytest.mark.parametrize("kind", GPU_ABLE)
def test_counts_below_one_are_refused(kind: Any, parameter: str) -> None:
    with pytest.raises(TrainingException, match=f"{parameter} must be at least 1, got 0"):
        local(kind, **{parameter: 0})


@pytest.mark.parametrize("parameter", ["node_count", "process_count_per_node"])
@pytest.mark.parametrize("kind", GPU_ABLE)
def test_several_processes_need_a_distribution(kind: Any, parameter: str) -> None:
    with pytest.raises(TrainingException, match="need a distributed_training"):
        local(kind, **{parameter: 2})


@pytest.mark.parametrize("target", ["local", "some-name", OtherTarget()])
def test_several_nodes_are_described_on_any_target(target: Any) -> None:
    estimator = local(PyTorch, compute_target=target, node_count=2, distributed_training=Mpi())
    assert estimator.run_config.node_count == 2


@pytest.mark.parametrize(
    ("kind", "backend"),
    [(Estimator, "ps"), (Estimator, "nccl"), (PyTorch, "ps"), (TensorFlow, "gloo"), (TensorFlow, "spark")],
)
def test_an_unsupported_backend_is_refused(kind: Any, backend: str) -> None:
    with pytest.raises(TrainingException, match=f"has no distributed_backend '{backend}'"):
        local(kind, distributed_backend=backend)


@pytest.mark.parametrize(
    ("kind", "training"),
    [
        (PyTorch, ParameterServer()),
        (TensorFlow, Nccl()),
        (TensorFlow, Gloo()),
        (Estimator, ParameterServer()),
        (Estimator, Nccl()),
        (PyTorch, TensorflowConfiguration()),
        (TensorFlow, PyTorchConfiguration()),
    ],
)
def test_a_distribution_of_another_framework_is_refused(kind: Any, training: Any) -> None:
    with pytest.raises(TrainingException, match=f"{type(training).__name__} does not work with {kind.__name__}"):
        local(kind, distributed_training=training)


def test_a_distribution_must_be_an_object() -> None:
    with pytest.raises(TrainingException, match="distributed_training must be one of Mpi"):
        local(PyTorch, distributed_training="mpi")


DEFINITION_EXCLUDES = {
    "pip_packages": ["a"],
    "conda_packages": ["a"],
    "pip_requirements_file": "r.txt",
    "conda_dependencies_file": "c.yml",
    "pip_requirements_file_path": "r.txt",
    "conda_dependencies_file_path": "c.yml",
    "custom_docker_image": "a",
    "custom_docker_base_image": "a",
    "image_registry_details": ContainerRegistry(),
    "use_gpu": True,
    "user_managed": True,
    "shm_size": "1g",
    "environment_variables": {"A": "1"},
}


@pytest.mark.parametrize("parameter", DEFINITION_EXCLUDES)
def test_an_environment_definition_excludes_its_own_settings(parameter: str) -> None:
    with pytest.raises(TrainingException, match="environment_definition excludes"):
        local(environment_definition=Environment("e"), **{parameter: DEFINITION_EXCLUDES[parameter]})


@pytest.mark.parametrize("parameter", ["pip_packages", "conda_packages", "pip_requirements_file"])
def test_a_conda_file_excludes_other_packages(parameter: str) -> None:
    value: Any = "r.txt" if parameter.endswith("file") else ["a"]
    with pytest.raises(TrainingException, match=f"conda_dependencies_file excludes {parameter}"):
        local(conda_dependencies_file="c.yml", **{parameter: value})


@pytest.mark.parametrize("parameter", ["custom_docker_image", "custom_docker_base_image"])
def test_no_docker_excludes_an_image(parameter: str) -> None:
    with pytest.raises(TrainingException, match="use_docker=False excludes a custom image"):
        local(use_docker=False, **{parameter: "image"})


def test_both_spellings_of_the_image_are_refused() -> None:
    with pytest.raises(TrainingException, match="custom_docker_base_image and custom_docker_image"):
        local(custom_docker_base_image="a", custom_docker_image="b")


@pytest.mark.parametrize(
    "packages",
    [
        {"pip_packages": ["a"]},
        {"conda_packages": ["a"]},
        {"pip_requirements_file": "r.txt"},
        {"conda_dependencies_file": "c.yml"},
    ],
)
@pytest.mark.parametrize("kind", ALL)
def test_user_managed_excludes_packages(kind: Any, packages: Any) -> None:
    with pytest.raises(UserErrorException, match=f"user_managed=True .* excludes {next(iter(packages))}"):
        local(kind, user_managed=True, **packages)


@pytest.mark.parametrize("parameter", ["conda_dependencies_file", "pip_requirements_file"])
@pytest.mark.parametrize("name", ["absent.txt", "../outside.txt"])
def test_package_files_must_be_inside_the_project(parameter: str, name: str, project: Path) -> None:
    (project.parent / "outside.txt").write_text("numpy\n")
    with pytest.raises(UserErrorException, match="is not a file in the source directory"):
        local(folder=project, **{parameter: name})


def test_an_invalid_resume_from_is_refused() -> None:
    with pytest.raises(UserErrorException, match="resume_from must be a DataPath"):
        local(resume_from="outputs")


def test_inputs_of_other_kinds_are_refused() -> None:
    with pytest.raises(UserErrorException, match="inputs must be data references"):
        local(inputs=["a path"])


def test_worker_counts_without_a_backend_only_warn(caplog: pytest.LogCaptureFixture) -> None:
    estimator = local(TensorFlow, worker_count=3)
    assert estimator.run_config.communicator == "None"
    assert "ignored without distributed_backend" in caplog.text


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"node_count": "2"}, "node_count must be a whole number, got '2' (str)"),
        ({"node_count": True}, "node_count must be a whole number, got True (bool)"),
        ({"node_count": 1.5}, "node_count must be a whole number, got 1.5 (float)"),
        ({"pip_packages": "numpy"}, "pip_packages must be a list of package names, got 'numpy' (str)"),
        ({"pip_packages": [1]}, "pip_packages must be a list of package names, each of them text, got 1 (int)"),
        ({"pip_packages": ["--pre"]}, "pip_packages must be package names, got the pip option '--pre'"),
        ({"conda_packages": {"a": 1}}, "conda_packages must be a list of package names"),
        ({"environment_variables": ["A=1"]}, "environment_variables must be a dict of names and values"),
        ({"environment_variables": {"A": None}}, "environment_variables['A'] must be text, a number or a Secret"),
        ({"environment_variables": {"A=B": "1"}}, "a name in environment_variables must be text without '='"),
        ({"max_run_duration_seconds": -1}, "max_run_duration_seconds must be at least 1, got -1"),
        ({"max_run_duration_seconds": "1h"}, "max_run_duration_seconds must be a whole number, got '1h' (str)"),
        ({"use_gpu": "yes"}, "use_gpu must be True or False, got 'yes' (str)"),
        ({"user_managed": 1}, "user_managed must be True or False"),
        ({"entry_script": 3}, "entry_script must be a path, got 3 (int)"),
        ({"compute_target": 3}, "compute_target must be a compute target or its name, such as 'local', got 3 (int)"),
        ({"environment_definition": "env"}, "environment_definition must be an Environment, got 'env' (str)"),
        ({"shm_size": "lots"}, "shm_size must be a size such as '2g'"),
        ({"image_registry_details": "host"}, "image_registry_details must be a ContainerRegistry"),
        ({"custom_docker_image": 3}, "custom_docker_image must be text, got 3 (int)"),
        ({"distributed_backend": 3}, "distributed_backend must be text, got 3 (int)"),
        ({"resources": {"nodes": 1}}, "resources must be Resources(…)"),
    ],
)
def test_a_wrong_type_is_one_error_that_names_the_parameter(parameters: Any, text: str) -> None:
    with pytest.raises(TrainingException) as caught:
        local(**parameters)
    assert text in caught.value.message


def test_a_package_as_text_is_refused_with_a_hint() -> None:
    with pytest.raises(TrainingException) as caught:
        local(pip_packages="numpy")
    assert caught.value.hint == "write pip_packages=['numpy']"


# distribution


@pytest.mark.parametrize(
    ("kind", "parameters", "framework", "communicator"),
    [
        (PyTorch, {"distributed_backend": "MPI"}, "Python", "IntelMpi"),
        (PyTorch, {"distributed_training": Mpi(3)}, "python", "Mpi"),
        (PyTorch, {"distributed_training": MpiConfiguration(3)}, "Python", "IntelMpi"),
        (TensorFlow, {"distributed_backend": "ps"}, "TensorFlow", "ParameterServer"),
        (TensorFlow, {"distributed_training": ParameterServer(2)}, "tensorflow", "ParameterServer"),
        (PyTorch, {"distributed_backend": "nccl"}, "PyTorch", "nccl"),
        (PyTorch, {"distributed_backend": "gloo"}, "PyTorch", "gloo"),
        (PyTorch, {"distributed_training": Nccl()}, "pytorch", "Nccl"),
        (PyTorch, {"distributed_training": Gloo()}, "pytorch", "Gloo"),
        (PyTorch, {"distributed_backend": "gloo", "distributed_training": Mpi()}, "python", "Mpi"),
    ],
)
def test_both_notations_are_stored_under_their_names(
    kind: Any, parameters: Any, framework: str, communicator: str
) -> None:
    """B7.41."""
    config = local(kind, **parameters).run_config
    assert (config.framework, config.communicator) == (framework, communicator)


def test_the_counts_of_both_notations_are_stored() -> None:
    """B7.41."""
    assert local(PyTorch, distributed_training=Mpi(3)).run_config.mpi.process_count_per_node == 3
    by_name = local(PyTorch, distributed_backend="mpi", process_count_per_node=3)
    assert by_name.run_config.mpi.process_count_per_node == 3
    for estimator in (
        local(TensorFlow, distributed_backend="ps", worker_count=2, parameter_server_count=3),
        local(TensorFlow, distributed_training=ParameterServer(2, 3)),
    ):
        assert estimator.run_config.tensorflow.worker_count == 2
        assert estimator.run_config.tensorflow.parameter_server_count == 3


@pytest.mark.parametrize(
    ("kind", "parameters", "launch", "nodes", "each"),
    [
        (PyTorch, {}, launch.Single(), 1, 1),
        (PyTorch, {"distributed_training": Mpi()}, launch.Mpi(), 1, 1),
        (PyTorch, {"node_count": 2, "distributed_training": Mpi(3)}, launch.Mpi(), 2, 3),
        (TensorFlow, {"node_count": 2, "distributed_backend": "mpi"}, launch.Mpi(), 2, 1),
        (
            PyTorch,
            {"node_count": 2, "process_count_per_node": 2, "distributed_backend": "gloo"},
            launch.TorchDistributed("gloo"),
            2,
            2,
        ),
        (PyTorch, {"node_count": 2, "distributed_training": Nccl()}, launch.TorchDistributed("nccl"), 2, 1),
        (
            TensorFlow,
            {"node_count": 2, "worker_count": 2, "parameter_server_count": 1, "distributed_backend": "ps"},
            launch.ParameterServer(2, 1),
            2,
            2,
        ),
        (
            TensorFlow,
            {"distributed_training": ParameterServer(2, 0, chief=True, evaluator=True)},
            launch.ParameterServer(2, 0, chief=True, evaluator=True),
            1,
            3,
        ),
    ],
)
def test_each_notation_selects_its_launcher(
    kind: Any, parameters: Any, launch: Any, nodes: int, each: int, project: Path
) -> None:
    spec = local(kind, project, **parameters).to_spec()
    assert spec.launch == launch
    assert (spec.resources.nodes, spec.resources.processes_per_node) == (nodes, each)


def test_horovod_comes_with_mpi_and_only_with_mpi(project: Path) -> None:
    by_mpi = local(PyTorch, project, distributed_backend="mpi").to_spec().environment
    assert [framework.name for framework in by_mpi.frameworks] == ["pytorch", "openmpi", "horovod"]
    alone = local(PyTorch, project).to_spec().environment
    assert [framework.name for framework in alone.frameworks] == ["pytorch"]
    plain = local(Estimator, project, distributed_backend="mpi").to_spec().environment
    assert [framework.name for framework in plain.frameworks] == ["openmpi"]


def test_more_nodes_than_tasks_are_refused(project: Path) -> None:
    with pytest.raises(TrainingException, match="4 nodes for 3 tasks"):
        local(
            TensorFlow, project, node_count=4, worker_count=2, parameter_server_count=1, distributed_backend="ps"
        ).to_spec()


@pytest.mark.parametrize(
    "make", [lambda: Mpi(0), lambda: Mpi("2"), lambda: ParameterServer(0), lambda: ParameterServer(1, -1)]
)  # type: ignore[arg-type]
def test_empty_distributions_are_refused(make: Any) -> None:
    with pytest.raises(TrainingException):
        make()


# frameworks


@pytest.mark.parametrize(
    ("kind", "name", "version"),
    [(PyTorch, "pytorch", "2.13.0"), (TensorFlow, "tensorflow", "2.21.0"), (SKLearn, "scikit-learn", "1.9.1")],
)
def test_a_framework_estimator_installs_its_framework(kind: Any, name: str, version: str, project: Path) -> None:
    estimator = local(kind, project, pip_packages=["pandas"])
    assert estimator.framework_version == version == kind.DEFAULT_VERSION
    assert version in kind.get_supported_versions()
    environment = estimator.to_spec().environment
    assert environment.frameworks == (Framework(name, version),)
    assert environment.pip == ("pandas",)
    assert isinstance(estimator, Estimator)


@pytest.mark.parametrize(
    ("version", "selected"), [("2.13", "2.13.0"), ("2.13.0", "2.13.0"), ("2.5", "2.5.1"), ("2.5.0", "2.5.0")]
)
def test_a_version_series_selects_its_newest_release(version: str, selected: str) -> None:
    assert local(PyTorch, framework_version=version).framework_version == selected


@pytest.mark.parametrize(
    ("kind", "title", "version"),
    [
        (PyTorch, "PyTorch", "1.4"),
        (PyTorch, "PyTorch", "2"),
        (PyTorch, "PyTorch", "2.1"),
        (PyTorch, "PyTorch", ""),
        (TensorFlow, "TensorFlow", "1.13"),
        (SKLearn, "scikit-learn", "0.20.3"),
    ],
)
def test_an_unsupported_version_is_refused_with_the_supported_ones(kind: Any, title: str, version: str) -> None:
    """B6.39."""
    with pytest.raises(TrainingException) as caught:
        local(kind, framework_version=version)
    assert caught.value.message.startswith(f"{title} {version} is not available; supported: ")
    assert kind.DEFAULT_VERSION in caught.value.message
    assert "leave the version out" in caught.value.hint


def test_a_version_that_is_not_text_is_refused() -> None:
    with pytest.raises(TrainingException, match=r"framework_version must be text such as '2.13.0', got 2.1 \(float\)"):
        local(PyTorch, framework_version=2.1)


def test_pytorch_sets_its_variable_in_the_environment(project: Path) -> None:
    """B6.38."""
    estimator = local(PyTorch, project)
    assert estimator.run_config.environment_variables is None
    assert estimator.to_spec().environment.variables == {"NCCL_TREE_THRESHOLD": "0"}


# older spellings


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        (PyTorch, {"distributed_backend": "mpi"}),
        (PyTorch, {"distributed_backend": "mpi", "process_count_per_node": 2}),
        (TensorFlow, {"distributed_backend": "ps", "worker_count": 2}),
        (TensorFlow, {"distributed_backend": "ps", "parameter_server_count": 2}),
        (Estimator, {"use_docker": False}),
        (Estimator, {"custom_docker_base_image": "image"}),
        (Estimator, {"pip_requirements_file_path": "requirements.txt"}),
        (Estimator, {"conda_dependencies_file_path": "conda.yml"}),
    ],
)
def test_older_spellings_work_and_log_a_warning(
    kind: Any,
    parameters: Any,
    project: Path,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """B6.40."""
    (project / "requirements.txt").write_text("numpy\n")
    (project / "conda.yml").write_text("dependencies:\n- numpy\n")
    local(kind, project, **parameters)
    warned = [r.getMessage() for r in caplog.records if r.name == "runyard" and r.levelno == logging.WARNING]
    assert any(message.startswith(f"{list(parameters)[-1]} is deprecated") for message in warned)
    assert capsys.readouterr().out == ""


def test_an_ordinary_estimator_logs_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    local(PyTorch)
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]


# files of packages


def test_a_requirements_file_and_what_it_includes_are_read(project: Path) -> None:
    (project / "requirements.txt").write_text(
        "# first\nnumpy==2.0  # why\n-r sub/more.txt\npandas \\\n  >=2\n--extra-index-url https://example.org/simple\n\n"
    )
    (project / "sub" / "more.txt").write_text("scipy\n-r ../requirements.txt\n")
    spec = local(folder=project, pip_requirements_file="requirements.txt", pip_packages=["tqdm"]).to_spec()
    assert spec.environment.pip == (
        *("--extra-index-url https://example.org/simple", "numpy==2.0", "scipy", "pandas >=2", "tqdm"),
    )


def test_hashes_are_skipped_with_a_warning(project: Path, caplog: pytest.LogCaptureFixture) -> None:
    (project / "r.txt").write_text("numpy==2.0 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n")
    spec = local(folder=project, pip_requirements_file="r.txt").to_spec()
    assert spec.environment.pip == ("numpy==2.0",)
    assert "hashes" in caplog.text


def test_two_lines_for_one_package_are_merged(project: Path) -> None:
    lines = ('numpy<2; python_version<"3.9"', 'numpy>=2; python_version>="3.9"', "git+https://a/x", "git+https://a/y")
    (project / "r.txt").write_text("\n".join(lines))
    assert local(folder=project, pip_requirements_file="r.txt").to_spec().environment.pip == lines


@pytest.mark.parametrize("line", ["-e .", "--editable ./pkg", "-c constraints.txt", "--require-hashes", "--unknown x"])
def test_an_unsupported_line_is_named(line: str, project: Path) -> None:
    (project / "r.txt").write_text(f"numpy\n{line}\n")
    with pytest.raises(UserErrorException, match=r"line 2 of .*r\.txt' is not supported: ") as caught:
        local(folder=project, pip_requirements_file="r.txt")
    assert line in caught.value.message
    assert caught.value.hint


def test_an_included_file_outside_of_the_project_is_refused(project: Path) -> None:
    (project.parent / "outside.txt").write_text("numpy\n")
    (project / "r.txt").write_text("-r ../outside.txt\n")
    with pytest.raises(UserErrorException, match="is not inside the folder"):
        local(folder=project, pip_requirements_file="r.txt")


def test_a_conda_file_is_read(project: Path) -> None:
    (project / "conda.yml").write_text(
        "name: x\nchannels: [conda-forge]\ndependencies:\n- python=3.11\n- scipy\n- pip:\n  - numpy\n"
    )
    environment = local(folder=project, conda_dependencies_file="conda.yml").to_spec().environment
    assert (environment.python, environment.conda, environment.pip) == ("3.11", ("scipy",), ("numpy",))


# on disk, at submission


def refusal(estimator: Any) -> TrainingException:
    with pytest.raises(TrainingException) as caught:
        estimator.to_spec()
    assert isinstance(caught.value.inner_exception, ExperimentExecutionException)
    assert not estimator.run_config.data_references
    return caught.value


def test_nothing_is_looked_up_on_disk_before_submission() -> None:
    """B6.31."""
    estimator = local(folder="/no/such/folder", entry_script="nor-script.py")
    assert (estimator.source_directory, estimator.run_config.script) == ("/no/such/folder", "nor-script.py")


def test_a_missing_folder_is_named_with_the_nearest_one(project: Path) -> None:
    error = refusal(local(folder=project.parent / "projekt"))
    assert "does not exist" in error.message
    assert str(project.parent / "projekt") in error.message
    assert "did you mean 'project'?" in error.hint


def test_a_file_as_source_directory_is_refused_with_a_hint(project: Path) -> None:
    error = refusal(local(folder=project / "train.py"))
    assert "is a file, not a folder" in error.message
    assert "entry_script='train.py'" in error.hint


def test_a_missing_script_is_named_with_the_nearest_one(project: Path) -> None:
    """B6.31."""
    error = refusal(local(folder=project, entry_script="trian.py"))
    assert "no script 'trian.py'" in error.message
    assert "did you mean 'train.py'?" in error.hint


def test_a_missing_script_name_lists_the_scripts(project: Path) -> None:
    error = refusal(local(folder=project, entry_script=None))
    assert "no script is given" in error.message
    assert "scripts in this folder: train.py" in error.hint


@pytest.mark.parametrize("name", ["../outside.py", "sub/../../outside.py", "/etc/hostname", "../absent.py"])
def test_a_script_outside_of_the_folder_is_refused(name: str, project: Path) -> None:
    """B6.31."""
    (project.parent / "outside.py").write_text("")
    assert "is outside of the source directory" in refusal(local(folder=project, entry_script=name)).message


def test_a_script_linked_from_outside_is_refused(project: Path) -> None:
    (project.parent / "outside.py").write_text("")
    (project / "link.py").symlink_to(project.parent / "outside.py")
    assert "is a link to" in refusal(local(folder=project, entry_script="link.py")).message


def test_a_folder_as_script_is_refused(project: Path) -> None:
    assert (
        f"'{project / 'sub'}' is a folder, not a script" in refusal(local(folder=project, entry_script="sub")).message
    )


def test_a_notebook_as_script_is_refused_with_a_hint(project: Path) -> None:
    """B6.31."""
    (project / "train.ipynb").write_text("{}")
    error = refusal(local(folder=project, entry_script="train.ipynb"))
    assert "is a notebook" in error.message
    assert "nbconvert --to script train.ipynb" in error.hint


def test_an_unreadable_script_is_refused(project: Path) -> None:
    (project / "train.py").chmod(0)
    with as_nobody(project):
        assert "cannot be read" in refusal(local(folder=project)).message


@pytest.mark.parametrize("name", ["sub/deep.py", "./sub/deep.py", "sub/../sub/deep.py"])
def test_the_script_is_stored_relative_to_the_folder(name: str, project: Path) -> None:
    """B6.31."""
    assert local(folder=project, entry_script=name).to_spec().script == "sub/deep.py"


def test_an_absolute_script_path_becomes_relative(project: Path) -> None:
    spec = local(folder=project, entry_script=project / "sub" / "deep.py").to_spec()
    assert spec.script == "sub/deep.py"


def test_a_linked_folder_is_resolved(project: Path) -> None:
    (project.parent / "alias").symlink_to(project)
    entry_script = (project / "train.py").resolve()
    assert local(folder=project.parent / "alias", entry_script=entry_script).to_spec().script == "train.py"


def test_an_absolute_script_path_through_a_link_becomes_relative(project: Path) -> None:
    alias = project.parent / "alias"
    alias.symlink_to(project)
    assert local(folder=alias, entry_script=alias / "train.py").to_spec().script == "train.py"


def test_a_transient_cluster_is_selected_by_its_size(project: Path) -> None:
    estimator = Estimator(project, vm_size="big", entry_script="train.py")
    assert estimator.run_config.amlcompute.vm_size == "big"
    assert estimator.to_spec().target == "amlcompute"
    estimator.run_config.amlcompute.vm_size = None
    assert "needs a size" in refusal(estimator).message
