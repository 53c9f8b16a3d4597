"""Estimators: one object that says what a run is, in the words of the SDK v1."""

from __future__ import annotations

from typing import Any, ClassVar, Optional

from runyard.errors import ExperimentExecutionException, TrainingException
from runyard.sdk.azureml import no_effect
from runyard.sdk.core import validation
from runyard.sdk.environment.conda_dependencies import CondaDependencies
from runyard.sdk.environment.environment import ContainerRegistry, Environment
from runyard.sdk.training import arguments as command_line
from runyard.sdk.training import distributed, estimator_validation
from runyard.sdk.training.build_spec import Submission, submission_of
from runyard.sdk.training.data_inputs import note_references
from runyard.sdk.training.estimator_validation import Asked
from runyard.sdk.training.resume import resume_arguments
from runyard.sdk.training.run_configuration import THROW_AWAY_CLUSTER, RunConfiguration
from runyard.spec.environment import Framework
from runyard.spec.resources import Resources

# Switches of the SDK v1's own linting: old scripts may pass them, and they change nothing about a run.
_V1_SWITCHES = {"_enable_optimized_mode", "_disable_validation", "_show_lint_warnings", "_show_package_warnings"}
_OVERRIDABLE = ("inputs", "script_params", "source_directory_data_store")


class Estimator:
    """A script with its arguments, packages and target. Everything but the folder is a keyword.

    Nothing is looked up on disk here, except the files that list packages: folder and script are checked when the
    estimator is submitted.
    """

    _backends: ClassVar[tuple[str, ...]] = ("mpi",)
    _parameter_servers: Optional[distributed.ParameterServer] = None

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
        resources: Optional[Resources] = None,
        **switches: Any,
    ) -> None:
        self._refuse_unknown(switches)
        self._source_directory = validation.path("source_directory", source_directory) or "."
        asked = Asked(
            estimator=type(self).__name__,
            source_directory=self._source_directory,
            compute_target=compute_target,
            vm_size=vm_size,
            vm_priority=vm_priority,
            entry_script=entry_script,
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
            shm_size=shm_size,
            max_run_duration_seconds=max_run_duration_seconds,
        )
        asked = estimator_validation.checked(asked, self._backends)
        self._resources = _checked_resources(resources, asked)
        self._resume = resume_arguments(resume_from)
        estimator_validation.check_inputs(inputs)
        self._run_config = self._configured(asked)
        store = getattr(source_directory_data_store, "name", source_directory_data_store)
        self._run_config.source_directory_data_store = store
        kind, why = type(self).__name__, "all nodes of a run have one copy of its code"
        no_effect.told(self._run_config, "source_directory_data_store", store, why, by=kind)
        self._run_config.arguments = [*command_line.of_script_params(script_params), *self._resume]
        self._inputs = list(inputs or ())
        note_references(self._run_config, (*self._run_config.arguments, *self._inputs))

    @property
    def run_config(self) -> RunConfiguration:
        """What will be submitted; changes made to it count."""
        return self._run_config

    @property
    def conda_dependencies(self) -> CondaDependencies:
        """The packages besides the framework, which the yard adds when it knows the machine."""
        return self._run_config.environment.python.conda_dependencies

    @property
    def source_directory(self) -> str:
        return self._source_directory

    @property
    def max_attempts(self) -> int:
        """How often the script may be started, when a node is lost or its place is taken; ``run_config`` has more."""
        return self.run_config.max_attempts

    @max_attempts.setter
    def max_attempts(self, value: int) -> None:
        self.run_config.max_attempts = value

    def _frameworks(self) -> tuple[Framework, ...]:
        return ()

    def _messengers(self, config: RunConfiguration) -> tuple[Framework, ...]:
        """What the processes talk by, when they are started by MPI."""
        if config.communicator.lower() in distributed.MPI_COMMUNICATORS:
            return (Framework("openmpi", ""),)
        return ()

    def _variables(self) -> dict[str, str]:
        """What the framework needs in the environment of every process."""
        return {}

    def _submission(self, **overrides: Any) -> Submission:
        """Checked on disk. ``overrides`` are those of ``experiment.submit``; the estimator stays as it is."""
        unknown = sorted(set(overrides) - set(_OVERRIDABLE))
        if unknown:
            raise TrainingException(
                f"submit() cannot override {', '.join(map(repr, unknown))} of an estimator",
                hint=f"it takes {', '.join(_OVERRIDABLE)}; set the rest on the estimator",
            )
        arguments = self._run_config.arguments
        if overrides.get("script_params") is not None:
            arguments = [*command_line.of_script_params(overrides["script_params"]), *self._resume]
        inputs = self._inputs if overrides.get("inputs") is None else overrides["inputs"]
        estimator_validation.check_inputs(inputs)
        try:
            return submission_of(
                self._run_config,
                source_directory=self._source_directory,
                script=self._run_config.script,
                arguments=arguments,
                resources=self._resources,
                inputs=inputs,
            )
        except ExperimentExecutionException as e:
            raise TrainingException(e.message, hint=e.hint, inner_exception=e, **e.facts) from e

    def _configured(self, asked: Asked) -> RunConfiguration:
        config = RunConfiguration(script=asked.entry_script)
        if asked.compute_target is not None:
            config.target = asked.compute_target
        else:
            config.target = THROW_AWAY_CLUSTER
        config.amlcompute.vm_size, config.amlcompute.vm_priority = asked.vm_size, asked.vm_priority
        priority = None if str(asked.vm_priority).lower() == "dedicated" else asked.vm_priority
        kind, size = type(self).__name__, None if asked.compute_target is None else asked.vm_size
        no_effect.told(config.amlcompute, "vm_priority", priority, "machines of your own are not taken away", by=kind)
        no_effect.told(config.amlcompute, "vm_size", size, "compute_target says where it runs", by=kind)
        config.node_count = asked.node_count
        config.max_run_duration_seconds = asked.max_run_duration_seconds
        config.environment_variables = asked.environment_variables
        self._distribute(config, asked)
        if asked.environment_definition is not None:
            config.environment = asked.environment_definition
        else:
            frameworks = () if asked.user_managed else (*self._frameworks(), *self._messengers(config))
            config.environment = estimator_validation.environment_of(asked, frameworks, self._variables())
        return config

    def _distribute(self, config: RunConfiguration, asked: Asked) -> None:
        """An object wins over the older notation by name."""
        if asked.distributed_training is not None:
            distributed.write(config, asked.distributed_training)
        elif asked.distributed_backend == "mpi":
            distributed.write(config, distributed.MpiConfiguration(asked.process_count_per_node, asked.node_count))
        elif asked.distributed_backend == "ps":
            servers = self._parameter_servers or distributed.ParameterServer()
            distributed.write(
                config, distributed.TensorflowConfiguration(servers.worker_count, servers.parameter_server_count)
            )
        elif asked.distributed_backend is not None:
            distributed.write(config, distributed.PyTorchConfiguration(asked.distributed_backend))
        if config.framework.lower() == "pytorch" and not isinstance(
            asked.distributed_training, distributed.PyTorchConfiguration
        ):
            # the older notations count by node, this configuration counts all
            config.pytorch.process_count = asked.node_count * asked.process_count_per_node
            config.pytorch.node_count = asked.node_count

    def _refuse_unknown(self, switches: dict[str, Any]) -> None:
        import inspect

        for name in switches:
            if name not in _V1_SWITCHES:
                known = [p for p in inspect.signature(type(self).__init__).parameters if p not in ("self", "switches")]
                raise TypeError(
                    f"{type(self).__name__} has no parameter {name!r}: "
                    f"{validation.nearest(name, known)}it takes {', '.join(known)}"
                )


def _checked_resources(resources: Any, asked: Asked) -> Optional[Resources]:
    if resources is None:
        return None
    if not isinstance(resources, Resources):
        raise validation.wrong("resources", resources, "Resources(…)")
    for field, parameter in (("nodes", "node_count"), ("processes_per_node", "process_count_per_node")):
        said, counted = getattr(resources, field), getattr(asked, parameter)
        if said not in (1, counted):
            raise TrainingException(
                f"resources.{field} is {said}, but {parameter} is {counted}", hint=f"say it by {parameter} alone"
            )
    return resources
