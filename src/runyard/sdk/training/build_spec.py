"""What any submittable gives: a folder of code, checked, and the specification of the run."""

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
from runyard.sdk.training import arguments as command_line
from runyard.sdk.training.data_inputs import inputs_of
from runyard.sdk.training.distributed import gang_of
from runyard.sdk.training.run_configuration import THROW_AWAY_CLUSTER, RunConfiguration
from runyard.spec.environment import EnvironmentSpec
from runyard.spec.resources import Resources
from runyard.spec.run import NoEffect, RunSpec


@dataclass(frozen=True)
class Submission:
    source_directory: Path  # absolute
    spec: RunSpec
    vm_size: str = ""  # of a cluster that is to be there for this run
    inputs: tuple[Any, ...] = ()  # data; what it means is found out where it is submitted


def submission_of(
    run_config: RunConfiguration,
    *,
    source_directory: Any,
    script: Any,
    arguments: list[Any],
    resources: Optional[Resources] = None,
    inputs: Sequence[Any] = (),
) -> Submission:
    """Checks the folder and the script on disk; nothing is started or copied."""
    folder, relative = _checked_script(source_directory, script)
    _refuse_unavailable(run_config)
    environment = _environment_of(run_config, folder)
    gang = gang_of(run_config)
    resources = dataclasses.replace(
        resources or Resources(), nodes=gang.nodes, processes_per_node=gang.processes_per_node
    )
    if environment.gpu and resources.gpus_per_process == 0:
        resources = dataclasses.replace(resources, gpus_per_process=1)
    variables = validation.variables(
        "environment_variables", run_config.environment_variables, error=RunConfigurationException
    )
    return Submission(
        folder,
        RunSpec(
            script=relative,
            arguments=command_line.as_text(arguments),
            environment=environment,
            resources=resources,
            launch=gang.launch,
            target=run_config.target,
            framework=run_config.framework,
            communicator=run_config.communicator,
            environment_variables=variables or {},
            max_run_duration_seconds=validation.seconds(
                "max_run_duration_seconds", run_config.max_run_duration_seconds, error=RunConfigurationException
            ),
            directories_to_watch=tuple(str(folder) for folder in run_config.history.directories_to_watch),
            stall_after_s=run_config.stall.after_s,
            stall_action=run_config.stall.action,
            max_attempts=run_config.max_attempts,
            retry_on=run_config.retry_on,
            no_effect=_without_effect(run_config),
        ),
        vm_size=run_config.amlcompute.vm_size or "",
        inputs=inputs_of(run_config, (*arguments, *inputs)),
    )


def _checked_script(source_directory: Any, script: Any) -> tuple[Path, str]:
    given = validation.path("source_directory", source_directory, error=ExperimentExecutionException) or "."
    folder = Path(given).expanduser().absolute()
    if not folder.exists():
        where = "" if given == str(folder) else f" ({folder})"
        raise _refused(f"the source directory {given!r} does not exist{where}", _folder_hint(folder, given))
    if not folder.is_dir():
        raise _refused(
            f"the source directory {given!r} is a file, not a folder",
            f"write source_directory={str(Path(given).parent)!r}, entry_script={folder.name!r}",
        )
    folder = folder.resolve()
    name = validation.path("the entry script", script, error=ExperimentExecutionException)
    if not name:
        raise _refused(f"no script was named for the folder {str(folder)!r}", _script_hint(folder, ""))
    path = folder / name
    # '..' is taken away in the text first: resolve() of a path that does not exist could leave it
    if not _inside(Path(os.path.normpath(path)), folder) and not _inside(path.resolve(), folder):
        raise _refused(
            f"the script {name!r} is outside of the source directory {str(folder)!r}",
            "move it into that folder, or name the folder that holds both: only the source directory travels",
        )
    if path.suffix == ".ipynb":
        raise _refused(
            f"{name!r} is a notebook; a run starts a Python script",
            f"jupyter nbconvert --to script {name}, then name {path.stem + '.py'!r}",
        )
    if not path.exists():
        raise _refused(f"there is no script {name!r} in {str(folder)!r}", _script_hint(folder, name))
    if path.is_dir():
        raise _refused(f"{str(path.resolve())!r} is a folder, not a script", _script_hint(path, ""))
    if not path.is_file():
        raise _refused(f"the script {name!r} in {str(folder)!r} is not a file", _script_hint(folder, name))
    if not _inside(path.resolve(), folder):
        raise _refused(
            f"the script {name!r} is a link to {str(path.resolve())!r}, outside of the folder {str(folder)!r}",
            "copy the file into the folder: what a link points to does not travel",
        )
    if not os.access(path, os.R_OK):
        raise _refused(f"the script {str(path)!r} cannot be read", f"chmod u+r {path}")
    kept = Path(os.path.normpath(path))
    return folder, (kept if _inside(kept, folder) else path.resolve()).relative_to(folder).as_posix()


def _refuse_unavailable(run_config: RunConfiguration) -> None:
    if run_config.target == THROW_AWAY_CLUSTER and not run_config.amlcompute.vm_size:
        raise _refused(
            f"target {THROW_AWAY_CLUSTER!r} needs a size: amlcompute.vm_size is not set",
            "set it, or use compute_target='local'",
        )
    if run_config.framework.lower() == "pyspark":
        raise _refused("runs on Spark are not available", "use framework 'Python' and install pyspark by pip_packages")


def _without_effect(run_config: RunConfiguration) -> tuple[NoEffect, ...]:
    environment, history = run_config.environment, run_config.history
    always = "a run's code and files are always kept"
    no_effect.told(history, "output_collection", None if history.output_collection else False, always)
    no_effect.told(history, "snapshot_project", None if history.snapshot_project else False, always)
    parts = (run_config, *vars(run_config).values(), *vars(environment).values())
    return no_effect.about(*parts)


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


def _refused(message: str, hint: str) -> ExperimentExecutionException:
    return ExperimentExecutionException(message, hint=hint)


def _inside(path: Path, folder: Path) -> bool:
    return folder == path or folder in path.parents


def _folder_hint(folder: Path, given: str) -> str:
    relative = "the path is relative to the folder in which this Python was started"
    hint = f"check the path: {folder.parent} is there" if Path(given).is_absolute() else relative
    try:
        beside = [entry.name for entry in folder.parent.iterdir() if entry.is_dir()]
    except OSError:
        return "check the path" if Path(given).is_absolute() else f"check it; {relative}"
    return validation.nearest(folder.name, beside) + hint


def _script_hint(folder: Path, name: str) -> str:
    try:
        found = sorted(entry.name for entry in folder.iterdir() if entry.suffix == ".py")
    except OSError:
        found = []
    scripts = f"scripts in this folder: {', '.join(found[:10])}" if found else "this folder has no .py file"
    return validation.nearest(name, found) + scripts
