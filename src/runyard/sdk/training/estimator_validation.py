"""What an estimator accepts: types first, then combinations. Everything raises before anything is made."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runyard.errors import TrainingException, UserErrorException
from runyard.sdk.core import validation
from runyard.sdk.environment.conda_dependencies import CondaDependencies
from runyard.sdk.environment.environment import ContainerRegistry, Environment
from runyard.sdk.environment.requirements_file import requirement_lines
from runyard.sdk.training import distributed
from runyard.sdk.training.run_configuration import target_name
from runyard.spec.environment import Framework

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


@dataclass(frozen=True)
class Asked:
    """The parameters of an estimator as they were given; ``checked`` returns them in one spelling."""

    estimator: str
    source_directory: str
    compute_target: Any
    vm_size: Any
    vm_priority: Any
    entry_script: Any
    node_count: Any
    process_count_per_node: Any
    distributed_backend: Any
    distributed_training: Any
    use_gpu: Any
    use_docker: Any
    custom_docker_base_image: Any
    custom_docker_image: Any
    image_registry_details: Any
    user_managed: Any
    conda_packages: Any
    pip_packages: Any
    conda_dependencies_file_path: Any
    pip_requirements_file_path: Any
    conda_dependencies_file: Any
    pip_requirements_file: Any
    environment_variables: Any
    environment_definition: Any
    shm_size: Any
    max_run_duration_seconds: Any

    def given(self, names: tuple[str, ...]) -> list[str]:
        return [name for name in names if getattr(self, name)]


def checked(asked: Asked, backends: tuple[str, ...]) -> Asked:
    asked = _typed(asked)
    asked = _in_one_spelling(asked)
    _check_target(asked)
    _check_packages(asked)
    return _check_distribution(asked, backends)


def check_inputs(inputs: Any) -> None:
    if inputs is not None and not isinstance(inputs, (list, tuple)):
        raise validation.wrong("inputs", inputs, "a list of data references", error=UserErrorException)
    for item in inputs or ():
        refusal = getattr(item, "_not_an_argument", None)
        if refusal is not None:
            raise refusal()
        if not hasattr(item, "_as_argument"):
            raise validation.wrong("inputs", item, "data references and datasets", error=UserErrorException)


def environment_of(asked: Asked, frameworks: tuple[Framework, ...], variables: dict[str, str]) -> Environment:
    made = Environment("default-environment")
    made._frameworks = frameworks
    made.environment_variables = dict(variables)
    made.python.user_managed_dependencies = asked.user_managed
    made.python.conda_dependencies = _dependencies(asked)
    made.docker.enabled = asked.use_docker
    made.docker.gpu_support = asked.use_gpu
    made.docker.base_image = asked.custom_docker_image
    made.docker.shm_size = asked.shm_size
    if asked.image_registry_details is not None:
        made.docker.base_image_registry = asked.image_registry_details
    return made


def _typed(asked: Asked) -> Asked:
    if asked.environment_definition is not None and not isinstance(asked.environment_definition, Environment):
        raise validation.wrong("environment_definition", asked.environment_definition, "an Environment")
    registry = asked.image_registry_details
    if registry is not None and not isinstance(registry, ContainerRegistry):
        raise validation.wrong("image_registry_details", registry, "a ContainerRegistry")
    shm_size = validation.text("shm_size", asked.shm_size)
    if shm_size and not re.fullmatch(r"[1-9]\d*[bkmgBKMG]?", shm_size):
        raise validation.wrong("shm_size", shm_size, "a size such as '2g' or '512m'")
    for name in ("vm_size", "vm_priority", "custom_docker_base_image", "custom_docker_image", "distributed_backend"):
        validation.text(name, getattr(asked, name))
    for name in ("use_gpu", "use_docker", "user_managed"):
        validation.flag(name, getattr(asked, name))
    paths = (*_DEPRECATED, *_DEPRECATED.values(), "entry_script")
    typed_paths: dict[str, Any] = {name: validation.path(name, getattr(asked, name)) for name in paths}
    return dataclasses.replace(
        asked,
        node_count=validation.count("node_count", asked.node_count),
        process_count_per_node=validation.count("process_count_per_node", asked.process_count_per_node),
        pip_packages=validation.packages("pip_packages", asked.pip_packages),
        conda_packages=validation.packages("conda_packages", asked.conda_packages),
        environment_variables=validation.variables("environment_variables", asked.environment_variables),
        max_run_duration_seconds=validation.seconds("max_run_duration_seconds", asked.max_run_duration_seconds),
        **typed_paths,
    )


def _in_one_spelling(asked: Asked) -> Asked:
    """The older names of parameters still work, and are said once each in the log."""
    for old, new in _DEPRECATED.items():
        value = getattr(asked, old)
        if not value:
            continue
        if getattr(asked, new):
            raise TrainingException(f"{old} and {new} are the same parameter; both were given", hint=f"give {new}")
        deprecated(old, f"{new}=")
        asked = dataclasses.replace(asked, **{old: None, new: value})
    if not asked.use_docker:
        deprecated("use_docker", "environment_definition=")
        if asked.custom_docker_image:
            raise TrainingException(
                "use_docker=False excludes a custom image", hint="leave use_docker out, or the image"
            )
    return asked


def deprecated(parameter: str, instead: str) -> None:
    validation.log.warning("%s is deprecated; use %s instead", parameter, instead)


def _check_target(asked: Asked) -> None:
    if asked.compute_target is not None:
        target_name("compute_target", asked.compute_target, error=TrainingException)
    elif asked.vm_size is None:
        raise TrainingException(
            f"{asked.estimator} was not told where to run: compute_target is missing",
            hint="compute_target='local' is the machine that the yard is on",
        )


def _check_packages(asked: Asked) -> None:
    given = asked.given(_PACKAGES)
    excluded = asked.given(_EXCLUDED_BY_DEFINITION)
    if asked.environment_definition is not None and excluded:
        raise TrainingException(
            f"environment_definition excludes {', '.join(excluded)}",
            hint="say it in the environment, or leave environment_definition out",
        )
    if asked.conda_dependencies_file and len(given) > 1:
        others = ", ".join(name for name in given if name != "conda_dependencies_file")
        raise TrainingException(
            f"conda_dependencies_file excludes {others}", hint="write all packages into the conda file"
        )
    if asked.user_managed and given:
        raise UserErrorException(
            f"user_managed=True installs nothing, so it excludes {', '.join(given)}",
            hint="leave user_managed out to get these packages",
        )


def _check_distribution(asked: Asked, backends: tuple[str, ...]) -> Asked:
    backend, training = asked.distributed_backend, asked.distributed_training
    several = asked.node_count > 1 or asked.process_count_per_node > 1
    if backend is not None:
        deprecated("distributed_backend", "distributed_training=")
        if backend.lower() not in backends:
            raise TrainingException(
                f"{asked.estimator} has no distributed_backend {backend!r}", hint=f"it has: {', '.join(backends)}"
            )
    if asked.process_count_per_node > 1:
        deprecated("process_count_per_node", "distributed_training=Mpi(process_count_per_node)")
    if several and backend is None and training is None:
        raise TrainingException(
            f"node_count={asked.node_count}, process_count_per_node={asked.process_count_per_node}: "
            "several processes need a distributed_training",
            hint="distributed_training=Mpi() starts them by MPI",
        )
    if training is not None:
        _check_training(asked, backends)
    return dataclasses.replace(asked, distributed_backend=backend.lower() if backend else None)


def _check_training(asked: Asked, backends: tuple[str, ...]) -> None:
    training = asked.distributed_training
    if not isinstance(training, _DISTRIBUTIONS):
        raise validation.wrong(
            "distributed_training", training, f"one of {', '.join(kind.__name__ for kind in _DISTRIBUTIONS)}"
        )
    kinds = {
        distributed.MpiConfiguration: "mpi",
        distributed.TensorflowConfiguration: "ps",
        distributed.PyTorchConfiguration: getattr(training, "communication_backend", ""),
    }
    backend = kinds.get(type(training), str(training))
    if backend not in backends:
        raise TrainingException(
            f"{type(training).__name__} does not work with {asked.estimator}",
            hint=f"{asked.estimator} distributes by: {', '.join(backends)}",
        )


def _dependencies(asked: Asked) -> CondaDependencies:
    if asked.conda_dependencies_file:
        return CondaDependencies(_inside_project(asked, "conda_dependencies_file"))
    made = CondaDependencies.create(pip_packages=[], conda_packages=asked.conda_packages)
    if asked.pip_requirements_file:
        file = _inside_project(asked, "pip_requirements_file")
        made._add_pip_lines(requirement_lines(file, within=_project(asked)))
    for package in asked.pip_packages:
        made.add_pip_package(package)
    return made


def _inside_project(asked: Asked, parameter: str) -> Path:
    folder = _project(asked)
    file = folder / str(getattr(asked, parameter))
    if folder not in file.resolve().parents or not file.is_file():
        raise UserErrorException(
            f"{parameter} {getattr(asked, parameter)!r} is not a file in the source directory {str(folder)!r}",
            hint="give its path relative to the source directory",
            parameter=parameter,
        )
    return file


def _project(asked: Asked) -> Path:
    return Path(asked.source_directory).expanduser().resolve()
