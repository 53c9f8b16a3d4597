"""Estimator: the description of a run in one object, with the parameters of the SDK v1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Optional

from runyard.errors import ExperimentExecutionException, TrainingException
from runyard.sdk.azureml import no_effect
from runyard.sdk.core import validation
from runyard.sdk.environment.conda_dependencies import CondaDependencies
from runyard.sdk.training import arguments as command_line
from runyard.sdk.training import distributed, estimator_validation
from runyard.sdk.training.build_spec import Submission, build_submission
from runyard.sdk.training.data_inputs import add_references
from runyard.sdk.training.parameters import PARAMETER_SERVERS, EstimatorParameters, signature, with_defaults
from runyard.sdk.training.resume import resume_arguments
from runyard.sdk.training.run_configuration import TRANSIENT_CLUSTER, RunConfiguration
from runyard.spec.environment import Framework
from runyard.spec.run import RunSpec

if TYPE_CHECKING:
    from typing_extensions import Unpack

_OVERRIDABLE = ("inputs", "script_params", "source_directory_data_store")


class Estimator:
    """A script with its arguments, packages and compute target.

    Except for the files that list packages, nothing is read from disk here: the folder and the script are checked when
    the estimator is submitted.

    Args:
        source_directory: Folder with the code; ``None`` or ``""`` is the current folder.
        compute_target: A compute target or its name; ``"local"`` is the machine of the yard.
        vm_size: Size of a cluster that is shared by such runs, if there is no ``compute_target``.
        vm_priority: Has no effect.
        entry_script: The script, relative to ``source_directory``.
        script_params: Arguments of the script: ``{"--lr": 0.1, "--verbose": ""}``.
        node_count: Number of nodes.
        process_count_per_node: Processes per node; deprecated, use ``distributed_training=Mpi(...)``.
        distributed_backend: ``"mpi"``, ``"ps"``, ``"nccl"`` or ``"gloo"``; deprecated, use ``distributed_training``.
        distributed_training: Mpi, ParameterServer, Nccl, Gloo or one of the configuration classes.
        use_gpu: Install GPU packages and reserve a GPU per process.
        use_docker: Deprecated.
        custom_docker_base_image: Older name of ``custom_docker_image``.
        custom_docker_image: Container image to run in.
        image_registry_details: Registry of the image.
        user_managed: Install nothing and use an existing Python.
        conda_packages: Conda packages to install.
        pip_packages: Pip packages to install.
        conda_dependencies_file_path: Older name of ``conda_dependencies_file``.
        pip_requirements_file_path: Older name of ``pip_requirements_file``.
        conda_dependencies_file: Conda environment file inside of ``source_directory``.
        pip_requirements_file: Requirements file inside of ``source_directory``.
        environment_variables: Variables of every process.
        environment_definition: An Environment, instead of the package parameters.
        inputs: Data references and datasets that are not among the arguments.
        source_directory_data_store: Has no effect.
        shm_size: Shared memory of a container, such as ``"2g"``.
        resume_from: A DataPath that the script gets as ``--resume-from``.
        max_run_duration_seconds: Cancel the run after this time.
        resources: CPUs, GPUs and memory per process.

    Raises:
        TrainingException: A value or a combination is not valid.
        UserErrorException: A package file is not in the folder, or an input is not valid.
    """

    _backends: ClassVar[tuple[str, ...]] = ("mpi",)
    _excluded: ClassVar[tuple[str, ...]] = (*PARAMETER_SERVERS, "framework_version")

    @signature(*PARAMETER_SERVERS, "framework_version")
    def __init__(self, source_directory: Any, **parameters: Unpack[EstimatorParameters]) -> None:
        self._source_directory = validation.path("source_directory", source_directory) or "."
        parameters = with_defaults(type(self), parameters, self._excluded)
        estimator_validation.validate(type(self).__name__, parameters, self._backends)
        self._resume = resume_arguments(parameters["resume_from"])
        self._resources = parameters["resources"]
        self._run_config = self._configure(parameters)
        arguments = command_line.from_script_params(parameters["script_params"])
        self._run_config.arguments = [*arguments, *self._resume]
        self._inputs = list(parameters["inputs"] or ())
        add_references(self._run_config, (*self._run_config.arguments, *self._inputs))

    @property
    def run_config(self) -> RunConfiguration:
        """The run configuration that is submitted. It can be changed."""
        return self._run_config

    @property
    def conda_dependencies(self) -> CondaDependencies:
        """The packages, without the framework, which the yard adds for the machine that the run gets."""
        return self._run_config.environment.python.conda_dependencies

    @property
    def source_directory(self) -> str:
        return self._source_directory

    @property
    def max_attempts(self) -> int:
        """Number of times the script is started if a node is lost or preempted; see also ``run_config.retry_on``."""
        return self.run_config.max_attempts

    @max_attempts.setter
    def max_attempts(self, value: int) -> None:
        self.run_config.max_attempts = value

    def to_spec(self, **overrides: Any) -> RunSpec:
        """Check folder and script on disk, and return the specification that would be submitted.

        Args:
            **overrides: The overrides that ``experiment.submit`` takes; the estimator is not changed.

        Raises:
            TrainingException: The folder or the script is not usable.
        """
        return self._submission(**overrides).spec

    def _submission(self, **overrides: Any) -> Submission:
        unknown = sorted(set(overrides) - set(_OVERRIDABLE))
        if unknown:
            raise TrainingException(
                f"submit() cannot override {', '.join(map(repr, unknown))} of an estimator",
                hint=f"it takes {', '.join(_OVERRIDABLE)}; set other parameters on the estimator",
            )
        arguments = self._run_config.arguments
        if overrides.get("script_params") is not None:
            arguments = [*command_line.from_script_params(overrides["script_params"]), *self._resume]
        inputs = self._inputs if overrides.get("inputs") is None else overrides["inputs"]
        estimator_validation.check_inputs(inputs)
        try:
            return build_submission(
                self._run_config,
                source_directory=self._source_directory,
                script=self._run_config.script,
                arguments=arguments,
                resources=self._resources,
                inputs=inputs,
            )
        except ExperimentExecutionException as e:
            raise TrainingException(e.message, hint=e.hint, inner_exception=e, **e.facts) from e

    def _frameworks(self) -> tuple[Framework, ...]:
        return ()

    def _communication_libraries(self, config: RunConfiguration) -> tuple[Framework, ...]:
        if config.communicator.lower() in distributed.MPI_COMMUNICATORS:
            return (Framework("openmpi", ""),)
        return ()

    def _framework_variables(self) -> dict[str, str]:
        """Return the environment variables that the framework needs in every process."""
        return {}

    def _configure(self, parameters: EstimatorParameters) -> RunConfiguration:
        config = RunConfiguration(script=parameters["entry_script"])
        target, vm_size, vm_priority = parameters["compute_target"], parameters["vm_size"], parameters["vm_priority"]
        config.target = TRANSIENT_CLUSTER if target is None else target
        config.amlcompute.vm_size, config.amlcompute.vm_priority = vm_size, vm_priority
        store = parameters["source_directory_data_store"]
        config.source_directory_data_store = getattr(store, "name", store)
        self._warn_ignored(config, vm_size if target is not None else None, vm_priority)
        config.node_count = parameters["node_count"]
        config.max_run_duration_seconds = parameters["max_run_duration_seconds"]
        config.environment_variables = parameters["environment_variables"]
        self._distribute(config, parameters)
        if parameters["environment_definition"] is not None:
            config.environment = parameters["environment_definition"]
        else:
            is_managed = not parameters["user_managed"]
            frameworks = (*self._frameworks(), *self._communication_libraries(config)) if is_managed else ()
            config.environment = estimator_validation.build_environment(
                parameters, self._source_directory, frameworks, self._framework_variables()
            )
        return config

    def _warn_ignored(self, config: RunConfiguration, vm_size: Optional[str], vm_priority: Optional[str]) -> None:
        if str(vm_priority).lower() == "dedicated":
            vm_priority = None
        for owner, argument, value, reason in (
            (config.amlcompute, "vm_priority", vm_priority, "your own machines are never preempted"),
            (config.amlcompute, "vm_size", vm_size, "compute_target selects the machine"),
            (
                config,
                "source_directory_data_store",
                config.source_directory_data_store,
                "all nodes of a run share one copy of its code",
            ),
        ):
            no_effect.warn_ignored(owner, argument, value, reason, caller=type(self).__name__)

    def _distribute(self, config: RunConfiguration, parameters: EstimatorParameters) -> None:
        """Store the distribution; an object takes precedence over the older notation by name."""
        training, backend = parameters["distributed_training"], parameters["distributed_backend"]
        nodes, processes = parameters["node_count"], parameters["process_count_per_node"]
        if training is None and backend is not None:
            if backend == "mpi":
                training = distributed.MpiConfiguration(processes, nodes)
            elif backend == "ps":
                training = distributed.TensorflowConfiguration(
                    parameters["worker_count"], parameters["parameter_server_count"]
                )
            else:
                training = distributed.PyTorchConfiguration(backend)
        if training is not None:
            distributed.write(config, training)
        if config.framework.lower() == "pytorch" and not isinstance(
            parameters["distributed_training"], distributed.PyTorchConfiguration
        ):
            # the older notations count processes per node, this configuration counts all processes
            config.pytorch.process_count = nodes * processes
            config.pytorch.node_count = nodes
