"""ScriptRunConfig: a script and its run configuration, the alternative to an estimator."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, Optional

from runyard.errors import ExperimentExecutionException, RunConfigurationException
from runyard.sdk.core import validation
from runyard.sdk.environment.environment import Environment
from runyard.sdk.training import arguments as command_line
from runyard.sdk.training import distributed
from runyard.sdk.training.build_spec import Submission, build_submission
from runyard.sdk.training.resume import resume_arguments
from runyard.sdk.training.run_configuration import DockerConfiguration, RunConfiguration
from runyard.spec.environment import EnvironmentSpec
from runyard.spec.run import RunSpec

_QUOTED = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
_SHELL_SYNTAX = re.compile(r"&&|\|\||>>|<<|[;|<>&\n]")
_PYTHON = re.compile(r"python(3(\.\d+)?)?")


class ScriptRunConfig:
    """A script and its run configuration.

    Args:
        source_directory: Folder with the code; ``None`` or ``""`` is the current folder.
        script: The script, relative to ``source_directory``.
        arguments: Arguments of the script.
        run_config: A RunConfiguration; then the parameters from ``compute_target`` on are ignored, except
            ``resume_from`` and ``command``.
        compute_target: A compute target or its name; the default is ``"local"``.
        environment: Environment of the run.
        distributed_job_config: MpiConfiguration, TensorflowConfiguration or PyTorchConfiguration.
        resume_from: A DataPath that the script gets as ``--resume-from``.
        max_run_duration_seconds: Cancel the run after this time.
        command: A command that starts a Python script, instead of ``script`` and ``arguments``.
        docker_runtime_config: Options of the container.

    Raises:
        RunConfigurationException: A value is not valid.
    """

    MAX_DURATION_SECONDS_DEFAULT = 2592000
    DELIM = "#"

    def __init__(
        self,
        source_directory: Any,
        script: Any = None,
        arguments: Optional[list[Any]] = None,
        run_config: Optional[RunConfiguration] = None,
        _telemetry_values: Any = None,
        compute_target: Any = None,
        environment: Optional[Environment] = None,
        distributed_job_config: Any = None,
        resume_from: Any = None,
        max_run_duration_seconds: Optional[int] = MAX_DURATION_SECONDS_DEFAULT,
        command: Any = None,
        docker_runtime_config: Optional[DockerConfiguration] = None,
    ) -> None:
        self.source_directory = (
            validation.path("source_directory", source_directory, error=RunConfigurationException) or "."
        )
        self.script = validation.path("script", script, error=RunConfigurationException)
        self.arguments = command_line.from_list("arguments", arguments, RunConfigurationException)
        self.command = command
        if command:
            parse_command(command)
        self._resume = resume_arguments(resume_from)
        if run_config is None:
            self.run_config = RunConfiguration()
            self.run_config.max_run_duration_seconds = validation.seconds(
                "max_run_duration_seconds", max_run_duration_seconds, error=RunConfigurationException
            )
            self._configure(compute_target, environment, distributed_job_config, docker_runtime_config)
            return
        if not isinstance(run_config, RunConfiguration):
            raise validation.invalid("run_config", run_config, "a RunConfiguration", error=RunConfigurationException)
        self.run_config = run_config
        overridden = {
            "compute_target": compute_target,
            "environment": environment,
            "distributed_job_config": distributed_job_config,
            "docker_runtime_config": docker_runtime_config,
        }
        ignored = [name for name, value in overridden.items() if value is not None]
        if max_run_duration_seconds != self.MAX_DURATION_SECONDS_DEFAULT:
            ignored.append("max_run_duration_seconds")
        if ignored:
            validation.log.warning("these parameters are ignored because run_config is set: %s", ", ".join(ignored))

    @property
    def identity(self) -> str:
        return self.DELIM.join((type(self).__name__, str(self.script or self.run_config.script or "")))

    @property
    def max_attempts(self) -> int:
        """Number of times the script is started if a node is lost or preempted; see also ``run_config.retry_on``."""
        return self.run_config.max_attempts

    @max_attempts.setter
    def max_attempts(self, value: int) -> None:
        self.run_config.max_attempts = value

    def to_spec(self) -> RunSpec:
        """Check folder and script on disk, and return the specification that would be submitted.

        Raises:
            ExperimentExecutionException: The folder or the script is not usable.
            RunConfigurationException: The configuration is not valid.
        """
        return self._submission().spec

    def _configure(
        self,
        compute_target: Any,
        environment: Any,
        distributed_job_config: Any,
        docker_runtime_config: Any,
    ) -> None:
        config = self.run_config
        config.target = compute_target or "local"
        if environment is not None:
            if not isinstance(environment, Environment):
                raise validation.invalid("environment", environment, "an Environment", error=RunConfigurationException)
            config.environment = environment
        if distributed_job_config is not None:
            kinds = (
                distributed.MpiConfiguration,
                distributed.TensorflowConfiguration,
                distributed.PyTorchConfiguration,
            )
            if not isinstance(distributed_job_config, kinds):
                names = ", ".join(kind.__name__ for kind in kinds)
                raise validation.invalid(
                    "distributed_job_config", distributed_job_config, f"one of {names}", error=RunConfigurationException
                )
            distributed.write(config, distributed_job_config)
            config.node_count = getattr(distributed_job_config, "node_count", 0) or config.tensorflow.worker_count
        if docker_runtime_config is not None:
            if not isinstance(docker_runtime_config, DockerConfiguration):
                raise validation.invalid(
                    "docker_runtime_config",
                    docker_runtime_config,
                    "a DockerConfiguration",
                    error=RunConfigurationException,
                )
            config.docker = docker_runtime_config

    def _submission(self, **overrides: Any) -> Submission:
        if overrides:
            raise ExperimentExecutionException(
                f"submit() of a ScriptRunConfig takes no {', '.join(map(repr, sorted(overrides)))}",
                hint="set it on the ScriptRunConfig or on its run_config",
            )
        config = self.run_config
        # values of this object override those of the run configuration
        script, arguments = self.script or config.script, self.arguments or config.arguments
        command = self.command or config.command
        if command:
            if script or arguments:
                raise RunConfigurationException("command excludes script and arguments", hint="give one or the other")
            python, script, *arguments = parse_command(command)
        submission = build_submission(
            config, source_directory=self.source_directory, script=script, arguments=[*arguments, *self._resume]
        )
        if command:
            _check_python(python, submission.spec.environment)
        return submission


def parse_command(command: Any) -> list[Any]:
    """Split a command such as ``python train.py --lr 0.1``. Commands that start no Python script are refused."""
    words = _split(command) if isinstance(command, str) else command
    words = command_line.from_list("command", words, RunConfigurationException) or []
    if words[1:2] == ["-u"]:  # the output of a run's script is never buffered
        words = [words[0], *words[2:]]
    starts_python = len(words) > 1 and isinstance(words[0], str) and _PYTHON.fullmatch(Path(words[0]).name)
    if not starts_python or str(words[1]).startswith("-"):
        raise RunConfigurationException(
            f"only commands that start a Python script are supported, got {command!r}",
            hint="write ['python', 'train.py', …], or give script and arguments",
        )
    return [words[0], str(words[1]), *words[2:]]


def _split(command: str) -> list[str]:
    import shlex

    text = command.replace("\\\n", " ").strip()
    # the command is not run by a shell: `&& echo done` would become three arguments, and the run would complete
    match = _SHELL_SYNTAX.search(_QUOTED.sub(lambda quoted: "_" * len(quoted[0]), text))
    if match:
        part = "a second line" if match[0] == "\n" else repr(match[0])
        advice = "a backslash at its end continues a line" if match[0] == "\n" else "quotes make it a plain argument"
        raise RunConfigurationException(
            f"command has {part}, which only a shell interprets, and it is not run by a shell: {command!r}",
            hint="put it into a Python script that the command starts, which may start a shell script: "
            f"subprocess.run(['sh', 'steps.sh'], check=True); {advice}",
        )
    try:
        return shlex.split(text)
    except ValueError as error:
        raise RunConfigurationException(
            f"command cannot be parsed: {error} in {command!r}", hint="give it as a list: ['python', 'train.py', …]"
        ) from None


def _check_python(python: str, environment: EnvironmentSpec) -> None:
    """The run uses the Python of its environment; refuse a command that names another version."""
    if python == environment.interpreter:
        return
    name = Path(python).name
    version = name.removeprefix("python")
    environment_version = environment.python or ""
    if environment.interpreter == sys.executable:
        environment_version = ".".join(map(str, sys.version_info[:3]))
    if "." in version and not f"{environment_version}.".startswith(f"{version}."):
        actual = f"Python {environment_version}" if environment_version else "no fixed version"
        section = "environment.python"
        setting = f"{section}.conda_dependencies.set_python_version({version!r})"
        if environment.user_managed:
            setting = f"{section}.interpreter_path = {python!r}"
        raise RunConfigurationException(
            f"the command needs {name}, and the environment {environment.name!r} has {actual}",
            hint=f"write 'python' in the command, and set the version in the environment: {setting}",
        )
    if python != name:
        validation.log.warning("the run uses the Python of its environment, not %s of the command", python)
