"""A script and its run configuration: what to submit when no estimator is wanted."""

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
from runyard.sdk.training.build_spec import Submission, submission_of
from runyard.sdk.training.resume import resume_arguments
from runyard.sdk.training.run_configuration import DockerConfiguration, RunConfiguration
from runyard.spec.environment import EnvironmentSpec

_QUOTED = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
_OF_A_SHELL = re.compile(r"&&|\|\||>>|<<|[;|<>&\n]")
_PYTHON = re.compile(r"python(3(\.\d+)?)?")


class ScriptRunConfig:
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
        self.arguments = command_line.of_list("arguments", arguments, RunConfigurationException)
        self.command = command
        if command:
            words_of_command(command)
        self._resume = resume_arguments(resume_from)
        if run_config is None:
            self.run_config = RunConfiguration()
            self.run_config.max_run_duration_seconds = validation.seconds(
                "max_run_duration_seconds", max_run_duration_seconds, error=RunConfigurationException
            )
            self._configure(compute_target, environment, distributed_job_config, docker_runtime_config)
            return
        if not isinstance(run_config, RunConfiguration):
            raise validation.wrong("run_config", run_config, "a RunConfiguration", error=RunConfigurationException)
        self.run_config = run_config
        given = {
            "compute_target": compute_target,
            "environment": environment,
            "distributed_job_config": distributed_job_config,
            "docker_runtime_config": docker_runtime_config,
        }
        ignored = [name for name, value in given.items() if value is not None]
        if max_run_duration_seconds != self.MAX_DURATION_SECONDS_DEFAULT:
            ignored.append("max_run_duration_seconds")
        if ignored:
            validation.log.warning("run_config is given, so these are ignored: %s", ", ".join(ignored))

    @property
    def identity(self) -> str:
        return self.DELIM.join((type(self).__name__, str(self.script or self.run_config.script or "")))

    @property
    def max_attempts(self) -> int:
        """How often the script may be started, when a node is lost or its place is taken; ``run_config`` has more."""
        return self.run_config.max_attempts

    @max_attempts.setter
    def max_attempts(self, value: int) -> None:
        self.run_config.max_attempts = value

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
                raise validation.wrong("environment", environment, "an Environment", error=RunConfigurationException)
            config.environment = environment
        if distributed_job_config is not None:
            kinds = (
                distributed.MpiConfiguration,
                distributed.TensorflowConfiguration,
                distributed.PyTorchConfiguration,
            )
            if not isinstance(distributed_job_config, kinds):
                names = ", ".join(kind.__name__ for kind in kinds)
                raise validation.wrong(
                    "distributed_job_config", distributed_job_config, f"one of {names}", error=RunConfigurationException
                )
            distributed.write(config, distributed_job_config)
            config.node_count = getattr(distributed_job_config, "node_count", 0) or config.tensorflow.worker_count
        if docker_runtime_config is not None:
            if not isinstance(docker_runtime_config, DockerConfiguration):
                raise validation.wrong(
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
        # what is said here wins over what the run configuration says
        script, arguments = self.script or config.script, self.arguments or config.arguments
        command = self.command or config.command
        if command:
            if script or arguments:
                raise RunConfigurationException("command excludes script and arguments", hint="give one or the other")
            python, script, *arguments = words_of_command(command)
        submission = submission_of(
            config, source_directory=self.source_directory, script=script, arguments=[*arguments, *self._resume]
        )
        if command:
            _refuse_another_python(python, submission.spec.environment)
        return submission


def words_of_command(command: Any) -> list[Any]:
    """``['python', 'train.py', '--lr', 0.1]``: a command that starts a Python script; others are refused."""
    words = _split(command) if isinstance(command, str) else command
    words = command_line.of_list("command", words, RunConfigurationException) or []
    if words[1:2] == ["-u"]:  # scripts of a run write through at once by themselves
        words = [words[0], *words[2:]]
    starts_python = len(words) > 1 and isinstance(words[0], str) and _PYTHON.fullmatch(Path(words[0]).name)
    if not starts_python or str(words[1]).startswith("-"):
        raise RunConfigurationException(
            f"only commands that start a Python script are available in this version, not {command!r}",
            hint="write ['python', 'train.py', …], or give script and arguments",
        )
    return [words[0], str(words[1]), *words[2:]]


def _split(command: str) -> list[str]:
    import shlex

    text = command.replace("\\\n", " ").strip()
    # no shell reads it: `&& echo done` would be three arguments of the script, and the run be completed
    found = _OF_A_SHELL.search(_QUOTED.sub(lambda quoted: "_" * len(quoted[0]), text))
    if found:
        part = "a second line" if found[0] == "\n" else repr(found[0])
        plain = "a backslash at its end continues a line" if found[0] == "\n" else "quotes make it a plain argument"
        raise RunConfigurationException(
            f"command has {part}, which only a shell understands, and none reads it: {command!r}",
            hint="put it into a Python script that the command starts, which may start a shell script: "
            f"subprocess.run(['sh', 'steps.sh'], check=True); {plain}",
        )
    try:
        return shlex.split(text)
    except ValueError as error:
        raise RunConfigurationException(
            f"command cannot be read: {error} in {command!r}", hint="give it as a list: ['python', 'train.py', …]"
        ) from None


def _refuse_another_python(python: str, environment: EnvironmentSpec) -> None:
    """The run has the Python of its environment, whichever one the command names."""
    if python == environment.interpreter:
        return
    name = Path(python).name
    version = name.removeprefix("python")
    asked = environment.python or ""
    if environment.interpreter == sys.executable:
        asked = ".".join(map(str, sys.version_info[:3]))
    if "." in version and not f"{asked}.".startswith(f"{version}."):
        has = f"Python {asked}" if asked else "no version of its own choice"
        section = "environment.python"
        way = f"{section}.conda_dependencies.set_python_version({version!r})"
        if environment.user_managed:
            way = f"{section}.interpreter_path = {python!r}"
        raise RunConfigurationException(
            f"the command asks for {name}, and the environment {environment.name!r} has {has}",
            hint=f"write 'python' in the command, and say which one in the environment: {way}",
        )
    if python != name:
        validation.log.warning("the run has the Python of its environment, and not %s of the command", python)
