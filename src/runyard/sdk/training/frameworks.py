"""Estimators that bring their framework by themselves."""

from __future__ import annotations

from typing import Any, ClassVar, Optional

from runyard.sdk.core import validation
from runyard.sdk.environment.environment import ContainerRegistry, Environment
from runyard.sdk.training.distributed import ParameterServer
from runyard.sdk.training.estimator import Estimator
from runyard.sdk.training.estimator_validation import deprecated
from runyard.sdk.training.framework_versions import (
    HOROVOD_VERSION,
    PYTORCH,
    SCIKIT_LEARN,
    TENSORFLOW,
    KnownFramework,
    version_of,
)
from runyard.sdk.training.run_configuration import RunConfiguration
from runyard.spec.environment import Framework
from runyard.spec.resources import Resources


class FrameworkEstimator(Estimator):
    """The user never lists the framework: the yard installs it, for CPU or GPU, as the machine has it."""

    FRAMEWORK_NAME: ClassVar[str]
    DEFAULT_VERSION: ClassVar[str]
    _known: ClassVar[KnownFramework]
    _framework_version: str

    @classmethod
    def get_supported_versions(cls) -> list[str]:
        """Oldest first; the first two numbers alone stand for the newest of that series."""
        return list(cls._known.versions)

    @property
    def framework_version(self) -> str:
        return self._framework_version

    def _frameworks(self) -> tuple[Framework, ...]:
        return (self._known.at(self._framework_version),)

    def _messengers(self, config: RunConfiguration) -> tuple[Framework, ...]:
        """Horovod comes with MPI: the script only imports it."""
        by_mpi = super()._messengers(config)
        return (*by_mpi, Framework("horovod", HOROVOD_VERSION)) if by_mpi else ()


class PyTorch(FrameworkEstimator):
    """A PyTorch script."""

    FRAMEWORK_NAME = "PyTorch"
    DEFAULT_VERSION = PYTORCH.default
    _known = PYTORCH
    _backends = ("mpi", "gloo", "nccl")

    def __init__(
        self,
        source_directory: Any,
        *,
        compute_target: Any = None,
        vm_size: Optional[str] = None,
        vm_priority: Optional[str] = None,
        entry_script: Any = None,
        script_params: Optional[dict[str, Any]] = None,
        node_count: int = 1,
        process_count_per_node: int = 1,
        distributed_backend: Optional[str] = None,
        distributed_training: Any = None,
        use_gpu: bool = False,
        use_docker: bool = True,
        custom_docker_base_image: Optional[str] = None,
        custom_docker_image: Optional[str] = None,
        image_registry_details: Optional[ContainerRegistry] = None,
        user_managed: bool = False,
        conda_packages: Optional[list[str]] = None,
        pip_packages: Optional[list[str]] = None,
        conda_dependencies_file_path: Any = None,
        pip_requirements_file_path: Any = None,
        conda_dependencies_file: Any = None,
        pip_requirements_file: Any = None,
        environment_variables: Optional[dict[str, Any]] = None,
        environment_definition: Optional[Environment] = None,
        inputs: Optional[list[Any]] = None,
        source_directory_data_store: Any = None,
        shm_size: Optional[str] = None,
        resume_from: Any = None,
        max_run_duration_seconds: Optional[int] = None,
        framework_version: Optional[str] = None,
        resources: Optional[Resources] = None,
        **switches: Any,
    ) -> None:
        self._framework_version = version_of(self._known, framework_version)
        super().__init__(
            source_directory,
            compute_target=compute_target,
            vm_size=vm_size,
            vm_priority=vm_priority,
            entry_script=entry_script,
            script_params=script_params,
            node_count=node_count,
            process_count_per_node=process_count_per_node,
            distributed_backend=distributed_backend,
            distributed_training=distributed_training,
            use_gpu=use_gpu,
            use_docker=use_docker,
            custom_docker_base_image=custom_docker_base_image,
            custom_docker_image=custom_docker_image,
            image_registry_details=image_registry_details,
            user_managed=user_managed,
            conda_packages=conda_packages,
            pip_packages=pip_packages,
            conda_dependencies_file_path=conda_dependencies_file_path,
            pip_requirements_file_path=pip_requirements_file_path,
            conda_dependencies_file=conda_dependencies_file,
            pip_requirements_file=pip_requirements_file,
            environment_variables=environment_variables,
            environment_definition=environment_definition,
            inputs=inputs,
            source_directory_data_store=source_directory_data_store,
            shm_size=shm_size,
            resume_from=resume_from,
            max_run_duration_seconds=max_run_duration_seconds,
            resources=resources,
            **switches,
        )

    def _variables(self) -> dict[str, str]:
        return {"NCCL_TREE_THRESHOLD": "0"}


class TensorFlow(FrameworkEstimator):
    """A TensorFlow script."""

    FRAMEWORK_NAME = "TensorFlow"
    DEFAULT_VERSION = TENSORFLOW.default
    _known = TENSORFLOW
    _backends = ("mpi", "ps")

    def __init__(
        self,
        source_directory: Any,
        *,
        compute_target: Any = None,
        vm_size: Optional[str] = None,
        vm_priority: Optional[str] = None,
        entry_script: Any = None,
        script_params: Optional[dict[str, Any]] = None,
        node_count: int = 1,
        process_count_per_node: int = 1,
        worker_count: int = 1,
        parameter_server_count: int = 1,
        distributed_backend: Optional[str] = None,
        distributed_training: Any = None,
        use_gpu: bool = False,
        use_docker: bool = True,
        custom_docker_base_image: Optional[str] = None,
        custom_docker_image: Optional[str] = None,
        image_registry_details: Optional[ContainerRegistry] = None,
        user_managed: bool = False,
        conda_packages: Optional[list[str]] = None,
        pip_packages: Optional[list[str]] = None,
        conda_dependencies_file_path: Any = None,
        pip_requirements_file_path: Any = None,
        conda_dependencies_file: Any = None,
        pip_requirements_file: Any = None,
        environment_variables: Optional[dict[str, Any]] = None,
        environment_definition: Optional[Environment] = None,
        inputs: Optional[list[Any]] = None,
        source_directory_data_store: Any = None,
        shm_size: Optional[str] = None,
        resume_from: Any = None,
        max_run_duration_seconds: Optional[int] = None,
        framework_version: Optional[str] = None,
        resources: Optional[Resources] = None,
        **switches: Any,
    ) -> None:
        self._framework_version = version_of(self._known, framework_version)
        self._parameter_servers = _parameter_servers(worker_count, parameter_server_count, distributed_backend)
        super().__init__(
            source_directory,
            compute_target=compute_target,
            vm_size=vm_size,
            vm_priority=vm_priority,
            entry_script=entry_script,
            script_params=script_params,
            node_count=node_count,
            process_count_per_node=process_count_per_node,
            distributed_backend=distributed_backend,
            distributed_training=distributed_training,
            use_gpu=use_gpu,
            use_docker=use_docker,
            custom_docker_base_image=custom_docker_base_image,
            custom_docker_image=custom_docker_image,
            image_registry_details=image_registry_details,
            user_managed=user_managed,
            conda_packages=conda_packages,
            pip_packages=pip_packages,
            conda_dependencies_file_path=conda_dependencies_file_path,
            pip_requirements_file_path=pip_requirements_file_path,
            conda_dependencies_file=conda_dependencies_file,
            pip_requirements_file=pip_requirements_file,
            environment_variables=environment_variables,
            environment_definition=environment_definition,
            inputs=inputs,
            source_directory_data_store=source_directory_data_store,
            shm_size=shm_size,
            resume_from=resume_from,
            max_run_duration_seconds=max_run_duration_seconds,
            resources=resources,
            **switches,
        )


class SKLearn(FrameworkEstimator):
    """A scikit-learn script: one process, no GPU."""

    FRAMEWORK_NAME = "SKLearn"
    DEFAULT_VERSION = SCIKIT_LEARN.default
    _known = SCIKIT_LEARN
    _backends = ()

    def __init__(
        self,
        source_directory: Any,
        *,
        compute_target: Any = None,
        vm_size: Optional[str] = None,
        vm_priority: Optional[str] = None,
        entry_script: Any = None,
        script_params: Optional[dict[str, Any]] = None,
        use_docker: bool = True,
        custom_docker_image: Optional[str] = None,
        image_registry_details: Optional[ContainerRegistry] = None,
        user_managed: bool = False,
        conda_packages: Optional[list[str]] = None,
        pip_packages: Optional[list[str]] = None,
        conda_dependencies_file_path: Any = None,
        pip_requirements_file_path: Any = None,
        conda_dependencies_file: Any = None,
        pip_requirements_file: Any = None,
        environment_variables: Optional[dict[str, Any]] = None,
        environment_definition: Optional[Environment] = None,
        inputs: Optional[list[Any]] = None,
        shm_size: Optional[str] = None,
        resume_from: Any = None,
        max_run_duration_seconds: Optional[int] = None,
        framework_version: Optional[str] = None,
        resources: Optional[Resources] = None,
        **switches: Any,
    ) -> None:
        self._framework_version = version_of(self._known, framework_version)
        super().__init__(
            source_directory,
            compute_target=compute_target,
            vm_size=vm_size,
            vm_priority=vm_priority,
            entry_script=entry_script,
            script_params=script_params,
            use_docker=use_docker,
            custom_docker_image=custom_docker_image,
            image_registry_details=image_registry_details,
            user_managed=user_managed,
            conda_packages=conda_packages,
            pip_packages=pip_packages,
            conda_dependencies_file_path=conda_dependencies_file_path,
            pip_requirements_file_path=pip_requirements_file_path,
            conda_dependencies_file=conda_dependencies_file,
            pip_requirements_file=pip_requirements_file,
            environment_variables=environment_variables,
            environment_definition=environment_definition,
            inputs=inputs,
            shm_size=shm_size,
            resume_from=resume_from,
            max_run_duration_seconds=max_run_duration_seconds,
            resources=resources,
            **switches,
        )


def _parameter_servers(worker_count: Any, parameter_server_count: Any, backend: Any) -> Optional[ParameterServer]:
    given = ParameterServer(worker_count, parameter_server_count)
    if (given.worker_count, given.parameter_server_count) == (1, 1):
        return None
    for parameter in ("worker_count", "parameter_server_count"):
        if getattr(given, parameter) != 1:
            deprecated(parameter, "distributed_training=ParameterServer(worker_count, parameter_server_count)")
    if backend is None:
        validation.log.warning("worker_count and parameter_server_count are ignored without distributed_backend='ps'")
    return given
