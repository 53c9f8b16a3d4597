"""Parses the YAML job file of `runyard submit`. Keys are the parameters of an estimator."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

from runyard.cli.commands.run import FRAMEWORK_OF_BACKEND, Gang, estimator_class, secret_variables
from runyard.cli.fast_path import experiment_name
from runyard.cli.inputs import parse_inputs
from runyard.cli.sweep_syntax import SWEEP_KEYS, build_sweep
from runyard.errors import UserErrorException
from runyard.sdk.core.validation import did_you_mean

# key -> description
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
    "use $mnist in arguments",
    "environment_variables": "mapping of names to values",
    "secrets": "mapping of variables to stored secrets, such as {HF_TOKEN: hf-token}; or a list, such as [hf-token]",
    "user_managed": "true: run with the current Python; default if no packages are listed",
    "docker_image": "container image to run in",
    "shm_size": "shared memory of the container, such as 2g",
    "compute_target": "name; default: local",
    "distributed_backend": "mpi, gloo, nccl or ps, for several processes",
    "node_count": "integer, on a cluster",
    "process_count_per_node": "integer",
    "worker_count": "integer, for ps",
    "parameter_server_count": "integer, for ps",
    "use_gpu": "true or false",
    "resources": "mapping: cpus_per_process, gpus_per_process, memory_gb, share_gpus",
    "max_run_duration_seconds": "integer",
    "max_attempts": "integer: maximum number of attempts if a node is lost or the run is preempted",
    "retry_on": "list of reasons; default: node lost, preempted",
    "tags": "mapping of names to values",
    "sweep": "mapping: settings of a sweep, see below",
}
_SYNONYMS = {"args": "arguments", "params": "script_params", "parameters": "script_params"}
_RESOURCES = ("cpus_per_process", "gpus_per_process", "memory_gb", "share_gpus")
_PACKAGES = ("pip_packages", "pip_requirements_file", "conda_packages", "conda_dependencies_file")


@dataclass(frozen=True)
class Job:
    experiment: str
    estimator: Any
    tags: dict[str, Any] = field(default_factory=dict)


def read_job(file: str) -> Job:
    """Parse and validate a job file; the estimator validates the rest."""
    job = _parse(Path(file))
    _check_keys(file, "", job, tuple(KEYS))
    folder = (Path(file).absolute().parent / Path(str(job.get("source_directory", "."))).expanduser()).resolve()
    if not job.get("script"):
        raise UserErrorException(f"{file} has no script", hint="add a line such as  script: train.py")
    if "arguments" in job and "script_params" in job:
        raise UserErrorException(f"{file} has both arguments and script_params", hint="remove one of them")
    _check_arguments(file, job.get("arguments"))
    return Job(
        experiment=str(job.get("experiment") or experiment_name(str(folder))),
        estimator=_with_sweep(file, job, _estimator(file, folder, job)),
        tags=_mapping(file, job, "tags"),
    )


def _with_sweep(file: str, job: dict[str, Any], estimator: Any) -> Any:
    """The estimator, or a sweep of it if the file has a `sweep` section."""
    section = _mapping(file, job, "sweep")
    if not section:
        return estimator
    _check_keys(file, "sweep: ", section, tuple(SWEEP_KEYS))
    return build_sweep(estimator, section, in_file=True)


def _estimator(file: str, folder: Path, job: dict[str, Any]) -> Any:
    from runyard.spec.resources import Resources

    gang = _gang(file, job)
    framework, version = estimator_class(str(job.get("framework") or FRAMEWORK_OF_BACKEND.get(gang.backend, "")))
    if job.get("framework_version") is not None:
        version = {"framework_version": job["framework_version"]}
        if not job.get("framework"):
            raise UserErrorException(f"{file} has a framework_version but no framework", hint="framework: pytorch")
    resources = _mapping(file, job, "resources")
    _check_keys(file, "resources: ", resources, _RESOURCES)
    has_packages = any(job.get(key) for key in (*_PACKAGES, "framework", "python_version"))
    parameters = {key: job[key] for key in (*_PACKAGES, "environment_variables", "shm_size") if key in job}
    secrets = _secrets(file, job.get("secrets"))
    if secrets:
        parameters["environment_variables"] = {**(parameters.get("environment_variables") or {}), **secrets}
    for key in ("script_params", "use_gpu", "max_run_duration_seconds"):
        if job.get(key) is not None:
            parameters[key] = job[key]
    try:
        estimator = framework(
            str(folder),
            entry_script=job["script"],
            compute_target=job.get("compute_target") or "local",
            user_managed=job.get("user_managed", not has_packages),
            custom_docker_image=job.get("docker_image"),
            node_count=gang.nodes,
            distributed_training=gang.distribution(),
            inputs=parse_inputs(f"{file}: inputs", _mapping(file, job, "inputs")),
            resources=Resources(**resources),
            **parameters,
            **version,
        )
        for key in ("arguments", "max_attempts", "retry_on"):
            if job.get(key) is not None:
                setattr(estimator.run_config, key, job[key])
        if job.get("python_version") is not None:
            estimator.conda_dependencies.set_python_version(job["python_version"])
    except AttributeError as error:  # raised by the SDK for script_params that are not a mapping
        raise UserErrorException(f"{file}: {error}") from error
    return estimator


def _secrets(file: str, section: Any) -> dict[str, Any]:
    from runyard.sdk.core.secrets import Secret

    if section is None:
        return {}
    if isinstance(section, list) and all(isinstance(name, str) for name in section):
        return secret_variables(section)
    if isinstance(section, dict) and all(isinstance(name, str) for name in section.values()):
        return {str(variable): Secret(name) for variable, name in section.items()}
    raise UserErrorException(
        f"{file}: secrets must be a mapping of variables to names", hint="secrets: {HF_TOKEN: hf-token}"
    )


def _gang(file: str, job: dict[str, Any]) -> Gang:
    counts = {}
    for key, name in (
        ("node_count", "nodes"),
        ("process_count_per_node", "processes"),
        ("worker_count", "workers"),
        ("parameter_server_count", "servers"),
    ):
        if job.get(key) is not None:
            if isinstance(job[key], bool) or not isinstance(job[key], int):
                raise UserErrorException(f"{file}: {key} must be an integer, got {job[key]!r}")
            counts[name] = job[key]
    return Gang(str(job.get("distributed_backend") or "").lower(), **counts)


def _parse(path: Path) -> dict[str, Any]:
    import yaml

    try:
        job: Optional[Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserErrorException(
            f"cannot read {path}: {error.strerror}", hint="specify the path of a YAML file"
        ) from error
    except UnicodeDecodeError as error:
        raise UserErrorException(
            f"{path} is not a text file: {error}", hint="specify the path of a YAML file"
        ) from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise UserErrorException(
            f"{path} is not valid YAML{where}: {problem}", hint="see runyard submit --help for an example"
        ) from error
    if not isinstance(job, dict):
        raise UserErrorException(
            f"{path} must contain a mapping, got {type(job).__name__}",
            hint="see runyard submit --help for an example",
        )
    return {str(key): value for key, value in job.items()}


def _check_keys(file: str, where: str, section: dict[str, Any], allowed: tuple[str, ...]) -> None:
    unknown = [key for key in section if key not in allowed]
    if unknown:
        synonyms = {key: _SYNONYMS[key] for key in unknown if _SYNONYMS.get(key) in allowed}
        suggestion = "".join(
            f"did you mean {synonyms[key]!r}? " if key in synonyms else did_you_mean(key, allowed) for key in unknown
        )
        names = ", ".join(repr(key) for key in unknown)
        raise UserErrorException(
            f"{file}: {where}unknown key {names}", hint=f"{suggestion}available keys: {', '.join(allowed)}"
        )


def _check_arguments(file: str, arguments: Any) -> None:
    """Checked here because the SDK's error shows Python syntax."""
    import yaml

    if arguments is None or isinstance(arguments, list):
        return
    words = arguments.split() if isinstance(arguments, str) else ["--lr", 0.1]
    if isinstance(arguments, dict):
        hint = "use script_params for a mapping"
    else:
        hint = f"arguments: {yaml.safe_dump(words, default_flow_style=True, width=1000).strip()}"
    raise UserErrorException(f"{file}: arguments must be a list, got {arguments!r}", hint=hint)


def _mapping(file: str, job: dict[str, Any], key: str) -> dict[str, Any]:
    value = job.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise UserErrorException(f"{file}: {key} must be a mapping, got {value!r}", hint=f"{key}: {{name: value}}")
    return {str(name): item for name, item in value.items()}
