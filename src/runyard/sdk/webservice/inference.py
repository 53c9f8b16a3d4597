"""The `InferenceConfig` class: scoring script and environment of a service."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from runyard.errors import WebserviceException
from runyard.sdk.azureml.no_effect import warn_ignored
from runyard.sdk.webservice import entry_script as scripts
from runyard.spec.json import to_json

if TYPE_CHECKING:
    from runyard.sdk.core.workspace import Workspace
    from runyard.sdk.environment.environment import Environment

RUNTIMES = ("python", "spark-py")
_NO_IMAGE = "services run in environments of the yard, without a container image"


class InferenceConfig:
    """Scoring script and environment of a service.

    Args:
        entry_script: Path of the scoring script, relative to ``source_directory`` or the current folder.
        runtime: ``python`` or ``spark-py``; excludes ``environment``.
        conda_file: Conda file of the environment; excludes ``environment``.
        source_directory: Folder with the code; by default only the script is uploaded.
        description: Free text.
        environment: Environment of the service; default: that of the run that trained the model.

    Raises:
        WebserviceException: The script does not exist, or parameters contradict each other.
    """

    def __init__(
        self,
        entry_script: str,
        runtime: Optional[str] = None,
        conda_file: Optional[str] = None,
        extra_docker_file_steps: Optional[str] = None,
        source_directory: Optional[str] = None,
        enable_gpu: Optional[bool] = None,
        description: Optional[str] = None,
        base_image: Optional[str] = None,
        base_image_registry: Any = None,
        cuda_version: Optional[str] = None,
        environment: Optional[Environment] = None,
    ) -> None:
        self.entry_script = entry_script
        self.runtime = runtime
        self.conda_file = conda_file
        self.extra_docker_file_steps = extra_docker_file_steps
        self.source_directory = source_directory
        self.enable_gpu = enable_gpu
        self.description = description
        self.base_image = base_image
        self.base_image_registry = base_image_registry
        self.cuda_version = cuda_version
        self.environment = environment
        for argument, value in (
            ("extra_docker_file_steps", extra_docker_file_steps),
            ("base_image", base_image),
            ("base_image_registry", base_image_registry),
            ("cuda_version", cuda_version),
        ):
            warn_ignored(self, argument, value, _NO_IMAGE)
        warn_ignored(self, "enable_gpu", enable_gpu or None, "a service can use the GPUs of this machine")
        self.validate_configuration()

    def validate_configuration(self) -> None:
        """Raise WebserviceException if the configuration is invalid."""
        from runyard.sdk.environment.environment import Environment

        scripts.check_exists(self.entry_script, self.source_directory)
        if self.environment is not None and not isinstance(self.environment, Environment):
            raise WebserviceException(f"environment must be an Environment, got {self.environment!r}")
        if self.environment is not None and (self.conda_file or self.runtime):
            raise WebserviceException("environment excludes runtime and conda_file", hint="pass one of them")
        if self.runtime is not None and str(self.runtime).lower() not in RUNTIMES:
            raise WebserviceException(f"runtime must be one of {', '.join(RUNTIMES)}, got {self.runtime!r}")
        if self.conda_file is not None and not self._conda_path().is_file():
            raise WebserviceException(f"conda_file {self.conda_file!r} does not exist")

    def validation_script_content(self) -> None:
        """Raise WebserviceException if the script is not valid Python or lacks ``init()`` or ``run()``."""
        scripts.check_content(Path(self.source_directory or ".") / self.entry_script)

    def build_create_payload(self, workspace: Workspace, name: str, model_ids: Any) -> dict[str, Any]:
        """Return the body of a deployment request."""
        return {"name": name, "models": list(model_ids or ()), "spec": self._spec(workspace)}

    def build_profile_payload(
        self,
        profile_name: str,
        input_data: Any = None,
        workspace: Any = None,
        models: Any = None,
        dataset_id: Any = None,
        container_resource_requirements: Any = None,
        description: Any = None,
    ) -> dict[str, Any]:
        reason = "a service can use the whole machine"
        warn_ignored(self, "container_resource_requirements", container_resource_requirements, reason)
        return {
            "name": profile_name,
            "description": description,
            "inputData": input_data,
            "datasetId": dataset_id,
            "models": [getattr(model, "id", model) for model in models or ()],
        }

    def _spec(self, workspace: Workspace) -> dict[str, Any]:
        """Upload the code and return the spec of a service version."""
        self.validate_configuration()
        snapshot_id, script = scripts.take_snapshot_of(workspace.connection, self.entry_script, self.source_directory)
        environment = self._environment()
        return {
            "entry_script": script,
            "snapshot_id": snapshot_id,
            "environment": None if environment is None else to_json(environment.to_spec(self._folder())),
            "description": self.description,
        }

    def _environment(self) -> Optional[Environment]:
        from runyard.sdk.environment.environment import Environment

        if self.environment is not None or self.conda_file is None:
            return self.environment
        return Environment.from_conda_specification("service", str(self._conda_path()))

    def _folder(self) -> Optional[Path]:
        return Path(self.source_directory) if self.source_directory else None

    def _conda_path(self) -> Path:
        return Path(self.source_directory or ".") / str(self.conda_file)

    def __repr__(self) -> str:
        return f"InferenceConfig(entry_script={self.entry_script!r}, environment={self.environment!r})"
