"""The `Image` classes of the SDK v1: models and a scoring script under a name, to be deployed later.

No container image is built: a service runs in an environment of the yard.
"""

from __future__ import annotations

import secrets
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from runyard.errors import WebserviceException
from runyard.sdk.azureml.no_effect import warn_ignored
from runyard.sdk.core.labels import as_labels
from runyard.sdk.webservice import entry_script as scripts
from runyard.sdk.webservice.inference import RUNTIMES
from runyard.sdk.webservice.webservice import Labels, has_labels
from runyard.spec.folder import HomeFolder
from runyard.spec.json import to_json

if TYPE_CHECKING:
    from runyard.sdk.core.workspace import Workspace

Images = list["Image"]
_ROUTE = "/api/images"
_NO_IMAGE = "services run in environments of the yard, without a container image"


class ContainerImageConfig:
    """Scoring script, environment and labels of an image; created by ``ContainerImage.image_configuration``."""

    def __init__(self, execution_script: str, runtime: str, conda_file: Optional[str], dependencies: Labels) -> None:
        self.execution_script = execution_script
        self.runtime = runtime
        self.conda_file = conda_file
        self.dependencies = dependencies
        self.description: Optional[str] = None
        self.tags: dict[str, Any] = {}
        self.properties: dict[str, Any] = {}
        self.validate_configuration()

    def validate_configuration(self) -> None:
        scripts.check_exists(self.execution_script, None, "execution_script")
        if Path(self.execution_script).is_absolute() or Path(self.execution_script).name != self.execution_script:
            raise WebserviceException(
                f"execution_script {self.execution_script!r} must be a file in the current folder",
                hint="change to its folder first",
            )
        if str(self.runtime).lower() not in RUNTIMES:
            raise WebserviceException(f"runtime must be one of {', '.join(RUNTIMES)}, got {self.runtime!r}")
        if self.conda_file is not None and not Path(self.conda_file).is_file():
            raise WebserviceException(f"conda_file {self.conda_file!r} does not exist")

    def _spec(self, workspace: Workspace) -> dict[str, Any]:
        """Upload the code and return the spec of a service version."""
        from runyard.sdk.environment.environment import Environment

        connection = workspace.connection
        snapshot_id, script = scripts.take_snapshot_of(connection, self.execution_script, None, self.dependencies)
        environment = None
        if self.conda_file is not None:
            environment = to_json(Environment.from_conda_specification("service", self.conda_file).to_spec())
        return {
            "entry_script": script,
            "snapshot_id": snapshot_id,
            "environment": environment,
            "description": self.description,
        }


class Image:
    """An image. ``Image(ws, name='digits')`` is the newest version of that name."""

    def __init__(
        self,
        workspace: Workspace,
        name: Optional[str] = None,
        id: Optional[str] = None,
        tags: Optional[Labels] = None,
        properties: Optional[Labels] = None,
        version: Optional[int] = None,
        **rest: Any,
    ) -> None:
        self.workspace = workspace
        view = rest.get("_view")
        if view is None:
            if id is not None:
                name, _, number = id.partition(":")
                version = int(number) if number else version
            if not name:
                raise WebserviceException("an image needs a name or an id")
            view = workspace.connection.get(f"{_ROUTE}/{name}", version=version)
            if not (has_labels(view["tags"], tags) and has_labels(view["properties"], properties)):
                raise WebserviceException(f"the image {name!r} does not have these tags and properties")
        self._load(view)

    @staticmethod
    def image_configuration() -> Any:
        raise WebserviceException("use ContainerImage.image_configuration(…) to configure an image")

    @staticmethod
    def create(workspace: Workspace, name: str, models: Labels, image_config: Any) -> ContainerImage:
        from runyard.sdk.webservice.deploy import model_ids_of

        if not isinstance(image_config, ContainerImageConfig):
            raise WebserviceException(
                f"image_config must be the result of ContainerImage.image_configuration(…), got {image_config!r}"
            )
        sys.stdout.write("Creating image\n")
        request = {
            "name": name,
            "models": model_ids_of(models or []),
            "spec": image_config._spec(workspace),
            "description": image_config.description,
            "tags": image_config.tags,
            "properties": image_config.properties,
        }
        return ContainerImage(workspace, _view=workspace.connection.post(_ROUTE, request))

    @staticmethod
    def list(
        workspace: Workspace,
        image_name: Optional[str] = None,
        model_name: Optional[str] = None,
        model_id: Optional[str] = None,
        tags: Optional[Labels] = None,
        properties: Optional[Labels] = None,
    ) -> Images:
        images = [ContainerImage(workspace, _view=view) for view in workspace.connection.get(_ROUTE)]
        return [
            image
            for image in images
            if (image_name is None or image.name == image_name)
            and (model_name is None or any(model.partition(":")[0] == model_name for model in image.model_ids))
            and (model_id is None or model_id in image.model_ids)
            and has_labels(image.tags, tags)
            and has_labels(image.properties, properties)
        ]

    @classmethod
    def deserialize(cls, workspace: Workspace, image_payload: dict[str, Any]) -> Image:
        if not isinstance(image_payload, dict) or "id" not in image_payload:
            raise WebserviceException("image_payload must be the result of image.serialize(), a dict with an 'id'")
        return ContainerImage(workspace, id=image_payload["id"])

    def wait_for_creation(self, show_output: bool = False) -> None:
        """Return immediately: the environment is built when the image is deployed."""
        if show_output:
            text = f'Image creation operation finished for image {self.id}, operation "{self.creation_state}"'
            sys.stdout.write(f"Running\n{self.creation_state}\n{text}\n")

    def update_creation_state(self) -> None:
        self._load(self.workspace.connection.get(f"{_ROUTE}/{self.name}", version=self.version))

    def update(self, tags: dict[str, Any]) -> None:
        """Replace all tags."""
        self._patch(tags=as_labels(tags, "tags"))

    def add_tags(self, tags: dict[str, Any]) -> None:
        self._patch(tags={**self.tags, **as_labels(tags, "tags")})

    def remove_tags(self, tags: Any) -> None:
        removed = [tags] if isinstance(tags, str) else [*tags]
        self._patch(tags={key: value for key, value in self.tags.items() if key not in removed})

    def add_properties(self, properties: dict[str, Any]) -> None:
        self._patch(properties=as_labels(properties, "properties"))

    def delete(self) -> None:
        """Delete the image. Services that were deployed from it continue."""
        self.workspace.connection.delete(f"{_ROUTE}/{self.name}/{self.version}")

    def serialize(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "name": self.name,
            "version": self.version,
            "createdTime": self.created_time.isoformat(),
            "creationState": self.creation_state,
            "description": self.description,
            "imageLocation": self.image_location,
            "imageBuildLogUri": self.image_build_log_uri,
            "imageType": "Docker",
            "modelIds": self.model_ids,
            "tags": self.tags,
            "properties": self.properties,
        }

    def _patch(self, **values: Any) -> None:
        self._load(self.workspace.connection.patch(f"{_ROUTE}/{self.name}/{self.version}", values))

    def _load(self, view: dict[str, Any]) -> None:
        self._view = view
        self.name: str = view["name"]
        self.version: int = view["version"]
        self.id = f"{self.name}:{self.version}"
        self.description: Optional[str] = view["description"]
        self.tags: dict[str, Any] = dict(view["tags"])
        self.properties: dict[str, Any] = dict(view["properties"])
        self.model_ids: Labels = [*view["models"]]
        self.created_time = datetime.fromtimestamp(view["created_at"], timezone.utc)
        self.creation_state = "Succeeded"
        self.image_location = f"runyard://images/{self.name}:{self.version}"
        self.image_build_log_uri = HomeFolder(self.workspace.home).yard_log.as_uri()

    @property
    def models(self) -> Labels:
        from runyard.sdk.model.model import Model

        return [Model(self.workspace, id=model) for model in self.model_ids]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(workspace={self.workspace!r}, name={self.name}, version={self.version})"


class ContainerImage(Image):
    """An image that can be created and deployed."""

    @staticmethod
    def image_configuration(  # type: ignore[override]
        execution_script: str,
        runtime: str,
        conda_file: Optional[str] = None,
        docker_file: Optional[str] = None,
        schema_file: Optional[str] = None,
        dependencies: Optional[Labels] = None,
        enable_gpu: Optional[bool] = None,
        tags: Optional[dict[str, Any]] = None,
        properties: Optional[dict[str, Any]] = None,
        description: Optional[str] = None,
        base_image: Optional[str] = None,
        base_image_registry: Any = None,
        cuda_version: Optional[str] = None,
    ) -> ContainerImageConfig:
        """Return the configuration for ``Image.create``.

        Args:
            execution_script: Scoring script in the current folder.
            runtime: ``python`` or ``spark-py``.
            conda_file: Conda file of the environment; default: the environment of the run that trained the model.
            schema_file: A file that the script needs.
            dependencies: Further files and folders that the script needs.
            tags: Labels.
            properties: Labels that cannot be changed.
            description: Free text.

        Raises:
            WebserviceException: A file does not exist, or a value is invalid.
        """
        extra_files = [*(dependencies or []), *([schema_file] if schema_file else [])]
        config = ContainerImageConfig(execution_script, runtime, conda_file, extra_files)
        config.description = description
        config.tags, config.properties = as_labels(tags, "tags"), as_labels(properties, "properties")
        for argument, value in (
            ("docker_file", docker_file),
            ("base_image", base_image),
            ("base_image_registry", base_image_registry),
            ("cuda_version", cuda_version),
        ):
            warn_ignored(config, argument, value, _NO_IMAGE)
        warn_ignored(config, "enable_gpu", enable_gpu or None, "a service can use the GPUs of this machine")
        return config

    def run(self, input_data: Any) -> Any:
        """Deploy the image temporarily, send one request, and return the response."""
        from runyard.sdk.webservice import deploy
        from runyard.sdk.webservice.kinds import LocalWebservice

        name = f"try-{secrets.token_hex(6)}"
        config = LocalWebservice.deploy_configuration()
        service = deploy.deploy_image(self.workspace, name, self, config, None, False)
        try:
            service.wait_for_deployment()
            return service.run(input_data)
        finally:
            service.delete()
