"""RunConfiguration: compute target, processes and environment of a run."""

from __future__ import annotations

from typing import Any, Optional

from runyard.errors import RunConfigurationException, UserErrorException
from runyard.lifecycle.state import RETRYABLE_REASONS
from runyard.sdk.core import validation
from runyard.sdk.core.sections import Section
from runyard.sdk.environment.conda_dependencies import CondaDependencies
from runyard.sdk.environment.environment import Environment
from runyard.sdk.training import arguments as command_line
from runyard.sdk.training.distributed import (
    COMMUNICATORS,
    MpiConfiguration,
    PyTorchConfiguration,
    TensorflowConfiguration,
)
from runyard.spec.run import RETRY_ON

# Base images that scripts name when they need none in particular; an isolated environment is used instead.
DEFAULT_CPU_IMAGE = "azureml/base:cpu"
DEFAULT_GPU_IMAGE = "azureml/base:gpu"
TRANSIENT_CLUSTER = "amlcompute"  # the target name of a cluster for one run
FRAMEWORKS = ("Python", "PyTorch", "TensorFlow", "PySpark", "CNTK")


class AmlComputeConfiguration(Section):
    _types = {"vm_size": (str, type(None)), "vm_priority": (str, type(None))}

    def __init__(self) -> None:
        self.vm_size: Optional[str] = None
        self.vm_priority: Optional[str] = None
        self._freeze_names()


class HistoryConfiguration(Section):
    _types = {"output_collection": (bool,), "snapshot_project": (bool,), "directories_to_watch": (list, tuple)}

    def __init__(self) -> None:
        self.output_collection = True
        self.snapshot_project = True
        self.directories_to_watch: list[str] = ["logs"]
        self._freeze_names()


class DockerConfiguration(Section):
    _types = {
        "use_docker": (bool,),
        "shared_volumes": (bool,),
        "arguments": (list, tuple),
        "shm_size": (str, type(None)),
    }

    def __init__(
        self,
        use_docker: bool = False,
        shared_volumes: bool = True,
        arguments: Optional[list[str]] = None,
        shm_size: Optional[str] = None,
    ) -> None:
        self.use_docker = use_docker
        self.shared_volumes = shared_volumes
        self.arguments = arguments or []
        self.shm_size = shm_size
        self._freeze_names()


class DataReferenceConfiguration(Section):
    def __init__(
        self,
        datastore_name: Optional[str] = None,
        mode: str = "mount",
        path_on_datastore: Optional[str] = None,
        path_on_compute: Optional[str] = None,
        overwrite: bool = False,
    ) -> None:
        if not isinstance(mode, str) or mode.lower() not in ("mount", "download", "upload"):
            raise validation.invalid("mode", mode, "'mount', 'download' or 'upload'", error=UserErrorException)
        self.data_store_name = datastore_name
        self.mode = mode.lower()
        self.path_on_data_store = path_on_datastore
        self.path_on_compute = path_on_compute
        self.overwrite = overwrite
        self._freeze_names()


class StallConfiguration(Section):
    """Detection of a stalled run: no log line, no metric and no CPU time of any process for ``after_s`` seconds.

    The stacks of all processes are then stored under ``logs/stalled/``.

    Args:
        after_s: Seconds without progress; None disables the detection.
        action: ``'report'`` lets the run continue, ``'stop'`` ends it.
    """

    _types = {"after_s": (int, float, type(None)), "action": (str,)}

    def __init__(self, after_s: Optional[float] = 1800.0, action: str = "report") -> None:
        if after_s is not None and after_s <= 0:
            raise validation.invalid(
                "after_s", after_s, "a number of seconds above 0, or None", error=RunConfigurationException
            )
        self.after_s = after_s
        self.action = action
        self._freeze_names()

    @property
    def action(self) -> str:
        return self._action

    @action.setter
    def action(self, action: str) -> None:
        if action not in ("report", "stop"):
            raise validation.invalid("action", action, "'report' or 'stop'", error=RunConfigurationException)
        self._action = action


class RunConfiguration(Section):
    """Compute target, processes and environment of a run.

    Args:
        script: The script, relative to the source directory.
        arguments: Arguments of the script.
        framework: ``"Python"``, ``"PyTorch"``, ``"TensorFlow"`` or ``"CNTK"``.
        communicator: ``"None"``, ``"Mpi"``, ``"ParameterServer"``, ``"Nccl"``, ``"Gloo"``, ...
        conda_dependencies: Packages of the environment.
        command: A command that starts a Python script, instead of ``script`` and ``arguments``.

    Raises:
        AttributeError: An attribute that does not exist is set, at any level.
    """

    _types = {
        "stall": (StallConfiguration,),
        "script": (str, type(None)),
        "node_count": (int,),
        "max_run_duration_seconds": (int, type(None)),
        "environment": (Environment,),
        "amlcompute": (AmlComputeConfiguration,),
        "history": (HistoryConfiguration,),
        "docker": (DockerConfiguration,),
        "mpi": (MpiConfiguration,),
        "tensorflow": (TensorflowConfiguration,),
        "pytorch": (PyTorchConfiguration,),
        "data_references": (dict,),
    }

    def __init__(
        self,
        script: Optional[str] = None,
        arguments: Optional[list[Any]] = None,
        framework: Optional[str] = None,
        communicator: Optional[str] = None,
        conda_dependencies: Optional[CondaDependencies] = None,
        _history_enabled: Optional[bool] = None,
        _path: Optional[str] = None,
        _name: Optional[str] = None,
        command: Any = None,
    ) -> None:
        self.script = script
        self.arguments = arguments or []
        self.command = command
        self.framework = framework
        self.communicator = communicator
        self.target = "local"
        self.node_count = 1
        self.max_run_duration_seconds: Optional[int] = None
        self.max_attempts = 1
        self.retry_on = RETRY_ON
        self.environment = Environment("default-environment")
        if conda_dependencies is not None:
            self.environment.python.conda_dependencies = conda_dependencies
        self.environment_variables = {}
        self.amlcompute = AmlComputeConfiguration()
        self.history = HistoryConfiguration()
        self.docker = DockerConfiguration()
        self.mpi = MpiConfiguration()
        self.tensorflow = TensorflowConfiguration()
        self.pytorch = PyTorchConfiguration()
        self.stall = StallConfiguration()
        self.data_references: dict[str, Any] = {}
        self.source_directory_data_store: Optional[str] = None
        self._freeze_names()

    def save(self, path: Any = None, name: Optional[str] = None, separate_environment_yaml: bool = False) -> None:
        """Write to ``.azureml/<name>.runconfig`` below the folder ``path``, or to the file ``path``."""
        from runyard.sdk.training import runconfig_file

        runconfig_file.save(self, path, name, separate_environment_yaml)

    @staticmethod
    def load(path: Any, name: Optional[str] = None) -> RunConfiguration:
        """Read a file of :meth:`save` or of the SDK v1."""
        from runyard.sdk.training import runconfig_file

        return runconfig_file.load(path, name)

    @staticmethod
    def delete(path: Any, name: str) -> None:
        """Delete the file."""
        from runyard.sdk.training import runconfig_file

        runconfig_file.delete(path, name)

    @property
    def target(self) -> str:
        return self._target

    @target.setter
    def target(self, target: Any) -> None:
        self._target = target_name("target", target, error=RunConfigurationException)

    @property
    def framework(self) -> str:
        return self._framework

    @framework.setter
    def framework(self, framework: Optional[str]) -> None:
        self._framework = _one_of("framework", FRAMEWORKS, framework)

    @property
    def communicator(self) -> str:
        return self._communicator

    @communicator.setter
    def communicator(self, communicator: Optional[str]) -> None:
        # an unknown communicator would count as none: a job of many processes would run as one, and complete
        self._communicator = _one_of("communicator", COMMUNICATORS, communicator)

    @property
    def max_attempts(self) -> int:
        """Number of times the script is started if it ends for one of the reasons in ``retry_on``."""
        return self._max_attempts

    @max_attempts.setter
    def max_attempts(self, value: int) -> None:
        self._max_attempts = validation.count("max_attempts", value, error=RunConfigurationException)

    @property
    def retry_on(self) -> tuple[str, ...]:
        """Reasons of an end after which the run is started again, such as ``"node lost"``."""
        return self._retry_on

    @retry_on.setter
    def retry_on(self, reasons: Any) -> None:
        allowed = [reason.value for reason in RETRYABLE_REASONS]
        if isinstance(reasons, str) or not all(reason in allowed for reason in reasons):
            expected = f"a list of {', '.join(map(repr, allowed))}"
            raise validation.invalid("retry_on", reasons, expected, error=RunConfigurationException)
        self._retry_on = tuple(reasons)

    @property
    def arguments(self) -> list[Any]:
        return self._arguments

    @arguments.setter
    def arguments(self, value: Any) -> None:
        self._arguments = command_line.from_list("arguments", value, RunConfigurationException) or []

    @property
    def environment_variables(self) -> Optional[dict[str, Any]]:
        """Variables of this run; they override those of the environment."""
        return self._variables

    @environment_variables.setter
    def environment_variables(self, value: Optional[dict[str, Any]]) -> None:
        validation.variables("environment_variables", value, error=RunConfigurationException)
        self._variables = value

    @property
    def auto_prepare_environment(self) -> bool:
        return True

    @auto_prepare_environment.setter
    def auto_prepare_environment(self, value: bool) -> None:
        validation.log.warning("auto_prepare_environment has no effect: a missing environment is always built")


def target_name(parameter: str, target: Any, *, error: type[Any] = RunConfigurationException) -> str:
    """Return the name of a compute target that is given as an object or by name."""
    name = target if isinstance(target, str) else getattr(target, "name", None)
    if not isinstance(name, str) or not name:
        raise validation.invalid(parameter, target, "a compute target or its name, such as 'local'", error=error)
    return name


def _one_of(parameter: str, allowed: tuple[str, ...], value: Any) -> str:
    """Check without regard to case; the first is the default. The spelling of the caller is returned."""
    if value is None or value == "":
        return allowed[0]
    if not isinstance(value, str) or value.lower() not in map(str.lower, allowed):
        hint = validation.did_you_mean(value, allowed).strip() if isinstance(value, str) else ""
        expected = f"one of {', '.join(map(repr, allowed))}"
        raise validation.invalid(parameter, value, expected, error=RunConfigurationException, hint=hint)
    return value
