"""Run configuration files, `.azureml/NAME.runconfig`: written as JSON, which is also YAML; read as either."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from runyard.errors import RunConfigurationException, UserErrorException
from runyard.sdk.core.secrets import Secret

if TYPE_CHECKING:
    from runyard.sdk.training.run_configuration import RunConfiguration

_SUFFIX = ".runconfig"
_FOLDERS = (".azureml", "aml_config")


def save(config: RunConfiguration, path: Any, name: Optional[str], separate_environment_yaml: bool) -> None:
    """Write to the file ``path``, or to ``.azureml/<name>.runconfig`` below the folder ``path``."""
    target = _file_path(path, name or "run", must_exist=False)
    target.parent.mkdir(parents=True, exist_ok=True)
    content = _to_content(config)
    if separate_environment_yaml:
        environment = target.with_name("environment.yml")
        environment.write_text(json.dumps(content.pop("environment"), indent=2) + "\n", encoding="utf-8")
    target.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def load(path: Any, name: Optional[str]) -> RunConfiguration:
    file = _file_path(path, name or "run", must_exist=True)
    content = _read(file)
    environment_file = file.with_name("environment.yml")
    if "environment" not in content and environment_file.is_file():
        content["environment"] = _read(environment_file)
    return _from_content(content, file)


def delete(path: Any, name: str) -> None:
    _file_path(path, name, must_exist=True).unlink()


def _file_path(path: Any, name: str, *, must_exist: bool) -> Path:
    base = Path(path or ".")
    if base.is_file() or (base.suffix and not base.is_dir()):
        return base
    candidates = [base / folder / f"{name}{_SUFFIX}" for folder in _FOLDERS] + [base / f"{name}{_SUFFIX}"]
    file = next((path for path in candidates if path.is_file()), None)
    if file is None and must_exist:
        raise UserErrorException(
            f"no run configuration {name!r} in {str(base.absolute())!r}",
            hint=f"searched {', '.join(path.relative_to(base).as_posix() for path in candidates)}",
        )
    return file or candidates[0]


def _to_content(config: RunConfiguration) -> dict[str, Any]:
    variables = config.environment_variables or {}
    return {
        "script": config.script,
        "command": config.command,
        "arguments": [str(argument) for argument in config.arguments],
        "target": config.target,
        "framework": config.framework,
        "communicator": config.communicator,
        "maxRunDurationSeconds": config.max_run_duration_seconds,
        "nodeCount": config.node_count,
        "environment": {"name": config.environment.name, **config.environment.to_definition()},
        "environmentVariables": {name: value for name, value in variables.items() if not isinstance(value, Secret)},
        "secrets": {name: value.name for name, value in variables.items() if isinstance(value, Secret)},
        "history": {
            "outputCollection": config.history.output_collection,
            "snapshotProject": config.history.snapshot_project,
            "directoriesToWatch": list(config.history.directories_to_watch),
        },
        "amlcompute": {"vmSize": config.amlcompute.vm_size, "vmPriority": config.amlcompute.vm_priority},
        "mpi": {"processCountPerNode": config.mpi.process_count_per_node},
        "tensorflow": {
            "workerCount": config.tensorflow.worker_count,
            "parameterServerCount": config.tensorflow.parameter_server_count,
        },
        "pytorch": {
            "communicationBackend": config.pytorch.communication_backend,
            "processCount": config.pytorch.process_count,
        },
        "sourceDirectoryDataStore": config.source_directory_data_store,
    }


def _from_content(content: dict[str, Any], file: Path) -> RunConfiguration:
    """Create a configuration from a file of Runyard or of the SDK v1; missing values keep their defaults."""
    from runyard.sdk.environment.environment import Environment
    from runyard.sdk.training.run_configuration import RunConfiguration

    config = RunConfiguration(content.get("script") or None, content.get("arguments") or [])
    config.command = content.get("command") or None
    for key, setting in (
        ("target", "target"),
        ("framework", "framework"),
        ("communicator", "communicator"),
        ("nodeCount", "node_count"),
        ("maxRunDurationSeconds", "max_run_duration_seconds"),
        ("sourceDirectoryDataStore", "source_directory_data_store"),
    ):
        if content.get(key) is not None:
            setattr(config, setting, content[key])
    definition = content.get("environment")
    if isinstance(definition, dict):
        config.environment = Environment.from_definition(definition.get("name") or "default-environment", definition)
    secrets = {name: Secret(value) for name, value in (content.get("secrets") or {}).items()}
    config.environment_variables = {**(content.get("environmentVariables") or {}), **secrets}
    for section, settings in (
        ("history", {"outputCollection": "output_collection", "directoriesToWatch": "directories_to_watch"}),
        ("amlcompute", {"vmSize": "vm_size", "vmPriority": "vm_priority"}),
        ("mpi", {"processCountPerNode": "process_count_per_node"}),
        ("tensorflow", {"workerCount": "worker_count", "parameterServerCount": "parameter_server_count"}),
        ("pytorch", {"communicationBackend": "communication_backend", "processCount": "process_count"}),
    ):
        values = content.get(section) or {}
        for key, setting in settings.items():
            if values.get(key) is not None:
                setattr(getattr(config, section), setting, values[key])
    if content.get("dataReferences"):
        names = ", ".join(sorted(content["dataReferences"]))
        raise RunConfigurationException(
            f"{file}: the data references {names} cannot be read from files",
            hint="set run_config.data_references in the script that loads it",
        )
    return config


def _read(file: Path) -> dict[str, Any]:
    try:
        text = file.read_text(encoding="utf-8")
        try:
            content = json.loads(text)
        except ValueError:
            import yaml

            content = yaml.safe_load(text)
    except ImportError:
        raise UserErrorException(
            f"{str(file)!r} cannot be read: this Python has no YAML parser", hint="pip install pyyaml"
        ) from None
    except Exception as error:  # a YAML parser raises its own types
        raise UserErrorException(f"{str(file)!r} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise UserErrorException(f"{str(file)!r} is not a run configuration", hint="run_config.save(folder) writes one")
    return content
