"""The YAML file of `runyard submit`: the parameters of an estimator, in their own names."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

from runyard.cli.commands.run import FRAMEWORK_OF_BACKEND, Gang, estimator_class
from runyard.cli.fast_path import experiment_name
from runyard.cli.inputs import inputs_of
from runyard.cli.sweep_syntax import SWEEP_KEYS, sweep_of
from runyard.errors import UserErrorException
from runyard.sdk.core.validation import did_you_mean

# key -> what it takes, for people
KEYS = {
    "experiment": "name; default: the name of the source directory",
    "source_directory": "folder, relative to this file; default: the folder of this file",
    "script": "the script, relative to the source directory",
    "arguments": "list, such as [--lr, 0.1, --verbose]",
    "script_params": "or a mapping, such as {--lr: 0.1, --verbose: ''}",
    "framework": "pytorch, tensorflow or scikit-learn",
    "framework_version": "such as '2.13.0'",
    "python_version": "such as '3.11'",
    "pip_packages": "list of requirements",
    "pip_requirements_file": "file in the source directory",
    "conda_packages": "list of conda packages",
    "conda_dependencies_file": "file in the source directory",
    "inputs": "mapping of names to datasets, such as {mnist: 'mnist:2'} or {mnist: {dataset: mnist, mode: download}}; "
    "arguments may say $mnist",
    "environment_variables": "mapping of names to values",
    "user_managed": "true: run with this Python as it is; the default when nothing names packages",
    "docker_image": "container image to run in",
    "shm_size": "shared memory of the container, such as 2g",
    "compute_target": "name; default: local",
    "distributed_backend": "mpi, gloo, nccl or ps, for several processes",
    "node_count": "whole number, on a cluster",
    "process_count_per_node": "whole number",
    "worker_count": "whole number, for ps",
    "parameter_server_count": "whole number, for ps",
    "use_gpu": "true or false",
    "resources": "mapping: cpus_per_process, gpus_per_process, memory_gb, share_gpus",
    "max_run_duration_seconds": "whole number",
    "max_attempts": "whole number: how often it may start, when a node is lost or its place is taken",
    "retry_on": "list of reasons; default: node lost, preempted",
    "tags": "mapping of names to values",
    "sweep": "mapping: what `runyard sweep` varies, see below",
}
_MEANT = {"args": "arguments", "params": "script_params", "parameters": "script_params"}  # by no spelling near
_RESOURCES = ("cpus_per_process", "gpus_per_process", "memory_gb", "share_gpus")
_PACKAGES = ("pip_packages", "pip_requirements_file", "conda_packages", "conda_dependencies_file")


@dataclass(frozen=True)
class Job:
    experiment: str
    estimator: Any
    tags: dict[str, Any] = field(default_factory=dict)


def read_job(file: str) -> Job:
    """Checked as far as it can be without the yard; the estimator checks the rest."""
    said = _parsed(Path(file))
    _check_keys(file, "", said, tuple(KEYS))
    folder = (Path(file).absolute().parent / Path(str(said.get("source_directory", "."))).expanduser()).resolve()
    if not said.get("script"):
        raise UserErrorException(f"{file} names no script", hint="add the line  script: train.py")
    if "arguments" in said and "script_params" in said:
        raise UserErrorException(f"{file} has both arguments and script_params", hint="keep one of them")
    _check_arguments(file, said.get("arguments"))
    return Job(
        experiment=str(said.get("experiment") or experiment_name(str(folder))),
        estimator=_swept(file, said, _estimator(file, folder, said)),
        tags=_mapping(file, said, "tags"),
    )


def _swept(file: str, said: dict[str, Any], estimator: Any) -> Any:
    """The estimator itself, or a sweep of it."""
    section = _mapping(file, said, "sweep")
    if not section:
        return estimator
    _check_keys(file, "sweep: ", section, tuple(SWEEP_KEYS))
    return sweep_of(estimator, section, in_file=True)


def _estimator(file: str, folder: Path, said: dict[str, Any]) -> Any:
    from runyard.spec.resources import Resources

    gang = _gang(file, said)
    framework, version = estimator_class(str(said.get("framework") or FRAMEWORK_OF_BACKEND.get(gang.backend, "")))
    if said.get("framework_version") is not None:
        version = {"framework_version": said["framework_version"]}
        if not said.get("framework"):
            raise UserErrorException(f"{file} has a framework_version but no framework", hint="framework: pytorch")
    resources = _mapping(file, said, "resources")
    _check_keys(file, "resources: ", resources, _RESOURCES)
    has_packages = any(said.get(key) for key in (*_PACKAGES, "framework", "python_version"))
    parameters = {key: said[key] for key in (*_PACKAGES, "environment_variables", "shm_size") if key in said}
    for key in ("script_params", "use_gpu", "max_run_duration_seconds"):
        if said.get(key) is not None:
            parameters[key] = said[key]
    try:
        made = framework(
            str(folder),
            entry_script=said["script"],
            compute_target=said.get("compute_target") or "local",
            user_managed=said.get("user_managed", not has_packages),
            custom_docker_image=said.get("docker_image"),
            node_count=gang.nodes,
            distributed_training=gang.distribution(),
            inputs=inputs_of(f"{file}: inputs", _mapping(file, said, "inputs")),
            resources=Resources(**resources),
            **parameters,
            **version,
        )
        for key in ("arguments", "max_attempts", "retry_on"):
            if said.get(key) is not None:
                setattr(made.run_config, key, said[key])
        if said.get("python_version") is not None:
            made.conda_dependencies.set_python_version(said["python_version"])
    except AttributeError as error:  # the SDK's own way of refusing script_params that are no mapping
        raise UserErrorException(f"{file}: {error}") from error
    return made


def _gang(file: str, said: dict[str, Any]) -> Gang:
    counts = {}
    for key, name in (
        ("node_count", "nodes"),
        ("process_count_per_node", "processes"),
        ("worker_count", "workers"),
        ("parameter_server_count", "servers"),
    ):
        if said.get(key) is not None:
            if isinstance(said[key], bool) or not isinstance(said[key], int):
                raise UserErrorException(f"{file}: {key} takes a whole number, not {said[key]!r}")
            counts[name] = said[key]
    return Gang(str(said.get("distributed_backend") or "").lower(), **counts)


def _parsed(path: Path) -> dict[str, Any]:
    import yaml

    try:
        said: Optional[Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserErrorException(
            f"{path} cannot be read: {error.strerror}", hint="give the path of a YAML file"
        ) from error
    except UnicodeDecodeError as error:
        raise UserErrorException(f"{path} is not text: {error}", hint="give the path of a YAML file") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        what = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise UserErrorException(
            f"{path} is not YAML{where}: {what}", hint="runyard submit --help shows a job"
        ) from error
    if not isinstance(said, dict):
        raise UserErrorException(
            f"{path} must be a mapping of keys to values, not {type(said).__name__}",
            hint="runyard submit --help shows a job",
        )
    return {str(key): value for key, value in said.items()}


def _check_keys(file: str, where: str, said: dict[str, Any], known: tuple[str, ...]) -> None:
    unknown = [key for key in said if key not in known]
    if unknown:
        meant = {key: _MEANT[key] for key in unknown if _MEANT.get(key) in known}
        near = "".join(
            f"did you mean {meant[key]!r}? " if key in meant else did_you_mean(key, known) for key in unknown
        )
        named = ", ".join(repr(key) for key in unknown)
        raise UserErrorException(f"{file}: {where}there is no key {named}", hint=f"{near}keys: {', '.join(known)}")


def _check_arguments(file: str, given: Any) -> None:
    """Here, since the SDK would say how it is written in Python."""
    import yaml

    if given is None or isinstance(given, list):
        return
    words = given.split() if isinstance(given, str) else ["--lr", 0.1]
    if isinstance(given, dict):
        hint = "script_params takes a mapping"
    else:
        hint = f"arguments: {yaml.safe_dump(words, default_flow_style=True, width=1000).strip()}"
    raise UserErrorException(f"{file}: arguments takes a list, not {given!r}", hint=hint)


def _mapping(file: str, said: dict[str, Any], key: str) -> dict[str, Any]:
    value = said.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise UserErrorException(f"{file}: {key} takes a mapping, not {value!r}", hint=f"{key}: {{name: value}}")
    return {str(name): item for name, item in value.items()}
