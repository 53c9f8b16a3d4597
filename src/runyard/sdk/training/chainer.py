"""The Chainer estimator. Its framework has no wheels and cannot be built any more: it runs where somebody has it."""

from __future__ import annotations

from typing import Any, Optional

from runyard.errors import TrainingException
from runyard.sdk.environment.environment import ContainerRegistry, Environment
from runyard.sdk.training.build_spec import Submission
from runyard.sdk.training.framework_versions import KnownFramework, version_of
from runyard.sdk.training.frameworks import FrameworkEstimator
from runyard.spec.environment import Framework
from runyard.spec.resources import Resources

CHAINER = KnownFramework(title="Chainer", name="chainer", versions=("5.1.0", "7.0.0"), default="5.1.0")


class Chainer(FrameworkEstimator):
    """A Chainer script, in a Python or an image of yours that has Chainer."""

    FRAMEWORK_NAME = "Chainer"
    DEFAULT_VERSION = CHAINER.default
    _known = CHAINER
    _backends = ("mpi",)

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
        self._brought = user_managed or environment_definition is not None or bool(custom_docker_image)
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

    def _frameworks(self) -> tuple[Framework, ...]:
        return ()

    def _submission(self, **overrides: Any) -> Submission:
        if not self._brought:
            raise TrainingException(
                "Chainer cannot be installed: its last release has no wheel, and needs a setuptools that is gone",
                hint="user_managed=True in a Python that has it, or custom_docker_image; its authors moved to PyTorch",
            )
        return super()._submission(**overrides)
