"""Builds the specification of a run, and checks its folder and script on disk."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from runyard.errors import ExperimentExecutionException, RunConfigurationException
from runyard.sdk.azureml import no_effect
from runyard.sdk.core import validation
from runyard.sdk.core.secrets import Secret
from runyard.sdk.training import arguments as command_line
from runyard.sdk.training.data_inputs import collect_inputs
from runyard.sdk.training.distributed import build_gang
from runyard.sdk.training.run_configuration import TRANSIENT_CLUSTER, RunConfiguration
from runyard.spec.environment import EnvironmentSpec
from runyard.spec.resources import Resources
from runyard.spec.run import NoEffect, RunSpec


@dataclass(frozen=True)
class Submission:
    """A run that is ready to be submitted to a workspace."""

    source_directory: Path  # absolute
    spec: RunSpec
    vm_size: str = ""  # size of the transient cluster, if the target is one
    inputs: tuple[Any, ...] = ()  # data inputs, resolved in the workspace of the submission


def build_submission(
    run_config: RunConfiguration,
    *,
    source_directory: Any,
    script: Any,
    arguments: list[Any],
    resources: Optional[Resources] = None,
    inputs: Sequence[Any] = (),
) -> Submission:
    """Check the folder and the script on disk; nothing is started or copied."""
    folder, relative = _check_script(source_directory, script)
    _check_availability(run_config)
    environment = _environment_of(run_config, folder)
    gang = build_gang(run_config)
    resources = dataclasses.replace(
        resources or Resources(), nodes=gang.nodes, processes_per_node=gang.processes_per_node
    )
    if resources.gpus_per_process:
        resources = dataclasses.replace(resources, gpus_required=True)
    elif environment.gpu:
        resources = dataclasses.replace(resources, gpus_per_process=1)
    variables = (
        validation.variables("environment_variables", run_config.environment_variables, error=RunConfigurationException)
        or {}
    )
    return Submission(
        folder,
        RunSpec(
            script=relative,
            arguments=command_line.to_text(arguments),
            environment=environment,
            resources=resources,
            launch=gang.launch,
            target=run_config.target,
            framework=run_config.framework,
            communicator=run_config.communicator,
            environment_variables={name: value for name, value in variables.items() if not isinstance(value, Secret)},
            secrets={name: value.name for name, value in variables.items() if isinstance(value, Secret)},
            max_run_duration_seconds=validation.seconds(
                "max_run_duration_seconds", run_config.max_run_duration_seconds, error=RunConfigurationException
            ),
            directories_to_watch=tuple(str(folder) for folder in run_config.history.directories_to_watch),
            stall_after_s=run_config.stall.after_s,
            stall_action=run_config.stall.action,
            max_attempts=run_config.max_attempts,
            retry_on=run_config.retry_on,
            no_effect=_no_effect_notes(run_config),
        ),
        vm_size=run_config.amlcompute.vm_size or "",
        inputs=collect_inputs(run_config, (*arguments, *inputs)),
    )


def _check_script(source_directory: Any, script: Any) -> tuple[Path, str]:
    directory = validation.path("source_directory", source_directory, error=ExperimentExecutionException) or "."
    folder = Path(directory).expanduser().absolute()
    if not folder.exists():
        full_path = "" if directory == str(folder) else f" ({folder})"
        raise _error(f"the source directory {directory!r} does not exist{full_path}", _folder_hint(folder, directory))
    if not folder.is_dir():
        raise _error(
            f"the source directory {directory!r} is a file, not a folder",
            f"write source_directory={str(Path(directory).parent)!r}, entry_script={folder.name!r}",
        )
    folder = folder.resolve()
    name = validation.path("the entry script", script, error=ExperimentExecutionException)
    if not name:
        raise _error(f"no script is given for the folder {str(folder)!r}", _script_hint(folder, ""))
    path = folder / name
    # normpath removes '..' first: resolve() of a path that does not exist could leave it
    if not _inside(Path(os.path.normpath(path)), folder) and not _inside(path.resolve(), folder):
        raise _error(
            f"the script {name!r} is outside of the source directory {str(folder)!r}",
            "move it into that folder, or use the folder that contains both: only the source directory is copied",
        )
    if path.suffix == ".ipynb":
        raise _error(
            f"{name!r} is a notebook; a run starts a Python script",
            f"jupyter nbconvert --to script {name}, then use {path.stem + '.py'!r}",
        )
    if not path.exists():
        raise _error(f"no script {name!r} in {str(folder)!r}", _script_hint(folder, name))
    if path.is_dir():
        raise _error(f"{str(path.resolve())!r} is a folder, not a script", _script_hint(path, ""))
    if not path.is_file():
        raise _error(f"the script {name!r} in {str(folder)!r} is not a file", _script_hint(folder, name))
    if not _inside(path.resolve(), folder):
        raise _error(
            f"the script {name!r} is a link to {str(path.resolve())!r}, outside of the folder {str(folder)!r}",
            "copy the file into the folder: targets of links are not copied",
        )
    if not os.access(path, os.R_OK):
        raise _error(f"the script {str(path)!r} cannot be read", f"chmod u+r {path}")
    normalized = Path(os.path.normpath(path))
    return folder, (normalized if _inside(normalized, folder) else path.resolve()).relative_to(folder).as_posix()


def _check_availability(run_config: RunConfiguration) -> None:
    if run_config.target == TRANSIENT_CLUSTER and not run_config.amlcompute.vm_size:
        raise _error(
            f"target {TRANSIENT_CLUSTER!r} needs a size: amlcompute.vm_size is not set",
            "set it, or use compute_target='local'",
        )
    if run_config.framework.lower() == "pyspark":
        raise _error("runs on Spark are not available", "use framework 'Python' and install pyspark with pip_packages")


def _no_effect_notes(run_config: RunConfiguration) -> tuple[NoEffect, ...]:
    environment, history = run_config.environment, run_config.history
    always = "a run's code and files are always stored"
    no_effect.warn_ignored(history, "output_collection", None if history.output_collection else False, always)
    no_effect.warn_ignored(history, "snapshot_project", None if history.snapshot_project else False, always)
    parts = (run_config, *vars(run_config).values(), *vars(environment).values())
    return no_effect.notes_of(*parts)


def _environment_of(run_config: RunConfiguration, folder: Path) -> EnvironmentSpec:
    spec = run_config.environment.to_spec(folder)
    docker = run_config.docker
    if spec.container is None:
        return spec
    container = dataclasses.replace(
        spec.container,
        arguments=tuple(map(str, docker.arguments)) or spec.container.arguments,
        shm_size=docker.shm_size or spec.container.shm_size,
    )
    return dataclasses.replace(spec, container=container)


def _error(message: str, hint: str) -> ExperimentExecutionException:
    return ExperimentExecutionException(message, hint=hint)


def _inside(path: Path, folder: Path) -> bool:
    return folder == path or folder in path.parents


def _folder_hint(folder: Path, directory: str) -> str:
    relative = "the path is relative to the folder in which this Python was started"
    hint = f"check the path: {folder.parent} exists" if Path(directory).is_absolute() else relative
    try:
        siblings = [entry.name for entry in folder.parent.iterdir() if entry.is_dir()]
    except OSError:
        return "check the path" if Path(directory).is_absolute() else f"check it; {relative}"
    return validation.did_you_mean(folder.name, siblings) + hint


def _script_hint(folder: Path, name: str) -> str:
    try:
        scripts = sorted(entry.name for entry in folder.iterdir() if entry.suffix == ".py")
    except OSError:
        scripts = []
    listing = f"scripts in this folder: {', '.join(scripts[:10])}" if scripts else "this folder has no .py file"
    return validation.did_you_mean(name, scripts) + listing
