"""Run configurations in files, `.azureml/NAME.runconfig`: written as JSON, which is YAML too; read as either."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from runyard.errors import RunConfigurationException, UserErrorException

if TYPE_CHECKING:
    from runyard.sdk.training.run_configuration import RunConfiguration

_SUFFIX = ".runconfig"
_FOLDERS = (".azureml", "aml_config")


def save(config: RunConfiguration, path: Any, name: Optional[str], separate_environment_yaml: bool) -> None:
    """To ``path`` itself where that is no folder and no name is given; else to its ``.azureml/<name>.runconfig``."""
    target = _place(path, name or "run", must_exist=False)
    target.parent.mkdir(parents=True, exist_ok=True)
    content = _content(config)
    if separate_environment_yaml:
        environment = target.with_name("environment.yml")
        environment.write_text(json.dumps(content.pop("environment"), indent=2) + "\n", encoding="utf-8")
    target.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def load(path: Any, name: Optional[str]) -> RunConfiguration:
    file = _place(path, name or "run", must_exist=True)
    content = _read(file)
    beside = file.with_name("environment.yml")
    if "environment" not in content and beside.is_file():
        content["environment"] = _read(beside)
    return _configured(content, file)


def delete(path: Any, name: str) -> None:
    _place(path, name, must_exist=True).unlink()


def _place(path: Any, name: str, *, must_exist: bool) -> Path:
    base = Path(path or ".")
    if base.is_file() or (base.suffix and not base.is_dir()):
        return base
    places = [base / folder / f"{name}{_SUFFIX}" for folder in _FOLDERS] + [base / f"{name}{_SUFFIX}"]
    found = next((place for place in places if place.is_file()), None)
    if found is None and must_exist:
        raise UserErrorException(
            f"there is no run configuration {name!r} in {str(base.absolute())!r}",
            hint=f"looked for {', '.join(place.relative_to(base).as_posix() for place in places)}",
        )
    return found or places[0]


def _content(config: RunConfiguration) -> dict[str, Any]:
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
        "environmentVariables": dict(config.environment_variables or {}),
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


def _configured(content: dict[str, Any], file: Path) -> RunConfiguration:
    """What a file of ours or of the SDK v1 says; what it does not say stays as it is by default."""
    from runyard.sdk.environment.environment import Environment
    from runyard.sdk.training.run_configuration import RunConfiguration

    made = RunConfiguration(content.get("script") or None, content.get("arguments") or [])
    made.command = content.get("command") or None
    for key, setting in (
        ("target", "target"),
        ("framework", "framework"),
        ("communicator", "communicator"),
        ("nodeCount", "node_count"),
        ("maxRunDurationSeconds", "max_run_duration_seconds"),
        ("sourceDirectoryDataStore", "source_directory_data_store"),
    ):
        if content.get(key) is not None:
            setattr(made, setting, content[key])
    described = content.get("environment")
    if isinstance(described, dict):
        made.environment = Environment.from_definition(described.get("name") or "default-environment", described)
    made.environment_variables = dict(content.get("environmentVariables") or {})
    for section, settings in (
        ("history", {"outputCollection": "output_collection", "directoriesToWatch": "directories_to_watch"}),
        ("amlcompute", {"vmSize": "vm_size", "vmPriority": "vm_priority"}),
        ("mpi", {"processCountPerNode": "process_count_per_node"}),
        ("tensorflow", {"workerCount": "worker_count", "parameterServerCount": "parameter_server_count"}),
        ("pytorch", {"communicationBackend": "communication_backend", "processCount": "process_count"}),
    ):
        said = content.get(section) or {}
        for key, setting in settings.items():
            if said.get(key) is not None:
                setattr(getattr(made, section), setting, said[key])
    if content.get("dataReferences"):
        names = ", ".join(sorted(content["dataReferences"]))
        raise RunConfigurationException(
            f"{file}: the data references {names} are not read from files",
            hint="set run_config.data_references in the script that loads it",
        )
    return made


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
            f"{str(file)!r} cannot be read: this Python has no YAML reader", hint="pip install pyyaml"
        ) from None
    except Exception as error:  # whatever a YAML reader says
        raise UserErrorException(f"{str(file)!r} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise UserErrorException(f"{str(file)!r} is not a run configuration", hint="run_config.save(folder) writes one")
    return content
