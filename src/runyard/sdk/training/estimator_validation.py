"""Validation of estimator parameters: types first, then combinations, before anything is built."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

from runyard.errors import TrainingException, UserErrorException
from runyard.sdk.core import validation
from runyard.sdk.environment.conda_dependencies import CondaDependencies
from runyard.sdk.environment.environment import Environment
from runyard.sdk.environment.requirements_file import requirement_lines
from runyard.sdk.environment.sections import ContainerRegistry
from runyard.sdk.training import distributed
from runyard.sdk.training.parameters import EstimatorParameters
from runyard.sdk.training.run_configuration import target_name
from runyard.spec.environment import Framework
from runyard.spec.resources import Resources

_DISTRIBUTIONS = (
    distributed.Mpi,
    distributed.ParameterServer,
    distributed.Nccl,
    distributed.Gloo,
    distributed.MpiConfiguration,
    distributed.TensorflowConfiguration,
    distributed.PyTorchConfiguration,
)
_PACKAGES = ("pip_packages", "conda_packages", "pip_requirements_file", "conda_dependencies_file")
_EXCLUDED_BY_DEFINITION = (
    *_PACKAGES,
    *("custom_docker_image", "image_registry_details", "use_gpu", "user_managed", "shm_size", "environment_variables"),
)
_DEPRECATED = {
    "custom_docker_base_image": "custom_docker_image",
    "conda_dependencies_file_path": "conda_dependencies_file",
    "pip_requirements_file_path": "pip_requirements_file",
}


def validate(estimator: str, parameters: EstimatorParameters, backends: tuple[str, ...]) -> None:
    """Check all parameters; replace deprecated names and convert values in place."""
    _check_types(parameters)
    _replace_deprecated(parameters)
    _check_target(estimator, parameters)
    _check_packages(parameters)
    _check_distribution(estimator, parameters, backends)
    _check_resources(parameters)
    check_inputs(parameters["inputs"])


def check_inputs(inputs: Any) -> None:
    if inputs is not None and not isinstance(inputs, (list, tuple)):
        raise validation.invalid("inputs", inputs, "a list of data references", error=UserErrorException)
    for item in inputs or ():
        refusal = getattr(item, "_argument_error", None)
        if refusal is not None:
            raise refusal()
        if not hasattr(item, "_as_argument"):
            raise validation.invalid("inputs", item, "data references and datasets", error=UserErrorException)


def build_environment(
    parameters: EstimatorParameters,
    source_directory: str,
    frameworks: tuple[Framework, ...],
    variables: dict[str, str],
) -> Environment:
    environment = Environment("default-environment")
    environment._frameworks = frameworks
    environment.environment_variables = dict(variables)
    environment.python.user_managed_dependencies = parameters["user_managed"]
    environment.python.conda_dependencies = _dependencies(parameters, Path(source_directory).expanduser().resolve())
    environment.docker.enabled = parameters["use_docker"]
    environment.docker.gpu_support = parameters["use_gpu"]
    environment.docker.base_image = parameters["custom_docker_image"]
    environment.docker.shm_size = parameters["shm_size"]
    if parameters["image_registry_details"] is not None:
        environment.docker.base_image_registry = parameters["image_registry_details"]
    return environment


def warn_deprecated(parameter: str, replacement: str) -> None:
    validation.log.warning("%s is deprecated; use %s instead", parameter, replacement)


def _check_types(parameters: EstimatorParameters) -> None:
    values = cast("dict[str, Any]", parameters)
    for name, kind, expected in (
        ("environment_definition", Environment, "an Environment"),
        ("image_registry_details", ContainerRegistry, "a ContainerRegistry"),
    ):
        if values[name] is not None and not isinstance(values[name], kind):
            raise validation.invalid(name, values[name], expected)
    shm_size = validation.text("shm_size", parameters["shm_size"])
    if shm_size and not re.fullmatch(r"[1-9]\d*[bkmgBKMG]?", shm_size):
        raise validation.invalid("shm_size", shm_size, "a size such as '2g' or '512m'")
    for check, names in (
        (validation.text, ("vm_size", "vm_priority", "custom_docker_base_image", "custom_docker_image")),
        (validation.text, ("distributed_backend",)),
        (validation.flag, ("use_gpu", "use_docker", "user_managed")),
        (validation.path, (*_DEPRECATED, *_DEPRECATED.values(), "entry_script")),
        (validation.count, ("node_count", "process_count_per_node")),
        (validation.packages, ("pip_packages", "conda_packages")),
        (validation.variables, ("environment_variables",)),
        (validation.seconds, ("max_run_duration_seconds",)),
    ):
        for name in names:
            values[name] = check(name, values[name])


def _replace_deprecated(parameters: EstimatorParameters) -> None:
    """Accept the older names of parameters, and log a warning for each."""
    values = cast("dict[str, Any]", parameters)
    for old, new in _DEPRECATED.items():
        if not values[old]:
            continue
        if values[new]:
            raise TrainingException(f"{old} and {new} are the same parameter; got both", hint=f"give {new}")
        warn_deprecated(old, f"{new}=")
        values[new], values[old] = values[old], None
    if not parameters["use_docker"]:
        warn_deprecated("use_docker", "environment_definition=")
        if parameters["custom_docker_image"]:
            raise TrainingException(
                "use_docker=False excludes a custom image", hint="leave use_docker out, or the image"
            )


def _check_target(estimator: str, parameters: EstimatorParameters) -> None:
    if parameters["compute_target"] is not None:
        target_name("compute_target", parameters["compute_target"], error=TrainingException)
    elif parameters["vm_size"] is None:
        raise TrainingException(
            f"{estimator} has no compute_target", hint="compute_target='local' is the machine of the yard"
        )


def _check_packages(parameters: EstimatorParameters) -> None:
    values = cast("dict[str, Any]", parameters)
    packages = [name for name in _PACKAGES if values[name]]
    excluded = [name for name in _EXCLUDED_BY_DEFINITION if values[name]]
    if parameters["environment_definition"] is not None and excluded:
        raise TrainingException(
            f"environment_definition excludes {', '.join(excluded)}",
            hint="set it in the environment, or leave environment_definition out",
        )
    if parameters["conda_dependencies_file"] and len(packages) > 1:
        excluded_names = ", ".join(name for name in packages if name != "conda_dependencies_file")
        raise TrainingException(
            f"conda_dependencies_file excludes {excluded_names}", hint="write all packages into the conda file"
        )
    if parameters["user_managed"] and packages:
        raise UserErrorException(
            f"user_managed=True installs nothing, so it excludes {', '.join(packages)}",
            hint="leave user_managed out to get these packages",
        )


def _check_distribution(estimator: str, parameters: EstimatorParameters, backends: tuple[str, ...]) -> None:
    backend, training = parameters["distributed_backend"], parameters["distributed_training"]
    nodes, processes = parameters["node_count"], parameters["process_count_per_node"]
    if backend is not None:
        warn_deprecated("distributed_backend", "distributed_training=")
        if backend.lower() not in backends:
            raise TrainingException(
                f"{estimator} has no distributed_backend {backend!r}", hint=f"it has: {', '.join(backends)}"
            )
        parameters["distributed_backend"] = backend.lower()
    if processes > 1:
        warn_deprecated("process_count_per_node", "distributed_training=Mpi(process_count_per_node)")
    if (nodes > 1 or processes > 1) and backend is None and training is None:
        raise TrainingException(
            f"node_count={nodes}, process_count_per_node={processes}: several processes need a distributed_training",
            hint="distributed_training=Mpi() starts them with MPI",
        )
    if training is not None:
        _check_training(estimator, training, backends)


def _check_training(estimator: str, training: Any, backends: tuple[str, ...]) -> None:
    if not isinstance(training, _DISTRIBUTIONS):
        raise validation.invalid(
            "distributed_training", training, f"one of {', '.join(kind.__name__ for kind in _DISTRIBUTIONS)}"
        )
    configurations = {
        distributed.MpiConfiguration: "mpi",
        distributed.TensorflowConfiguration: "ps",
        distributed.PyTorchConfiguration: getattr(training, "communication_backend", ""),
    }
    backend = configurations.get(type(training), str(training))
    if backend not in backends:
        raise TrainingException(
            f"{type(training).__name__} does not work with {estimator}",
            hint=f"the backends of {estimator} are: {', '.join(backends)}",
        )


def _check_resources(parameters: EstimatorParameters) -> None:
    resources = parameters["resources"]
    if resources is None:
        return
    if not isinstance(resources, Resources):
        raise validation.invalid("resources", resources, "Resources(…)")
    for field, name, count in (
        ("nodes", "node_count", parameters["node_count"]),
        ("processes_per_node", "process_count_per_node", parameters["process_count_per_node"]),
    ):
        value = getattr(resources, field)
        if value not in (1, count):
            raise TrainingException(f"resources.{field} is {value}, but {name} is {count}", hint=f"set only {name}")


def _dependencies(parameters: EstimatorParameters, project: Path) -> CondaDependencies:
    conda_file, pip_file = parameters["conda_dependencies_file"], parameters["pip_requirements_file"]
    if conda_file:
        return CondaDependencies(_project_file(project, "conda_dependencies_file", conda_file))
    dependencies = CondaDependencies.create(pip_packages=[], conda_packages=parameters["conda_packages"])
    if pip_file:
        file = _project_file(project, "pip_requirements_file", pip_file)
        dependencies._add_pip_lines(requirement_lines(file, within=project))
    for package in parameters["pip_packages"] or ():
        dependencies.add_pip_package(package)
    return dependencies


def _project_file(project: Path, parameter: str, name: str) -> Path:
    file = project / name
    if project not in file.resolve().parents or not file.is_file():
        raise UserErrorException(
            f"{parameter} {name!r} is not a file in the source directory {str(project)!r}",
            hint="give its path relative to the source directory",
            parameter=parameter,
        )
    return file
