"""The `Webservice` class: a deployed service."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Optional

from runyard.errors import UserErrorException, WebserviceException
from runyard.sdk.core.labels import as_labels

if TYPE_CHECKING:
    from runyard.sdk.core.workspace import Workspace

Labels = list[Any]
Webservices = list["Webservice"]
_ROUTE = "/api/services"


class Webservice:
    """A deployed service. ``Webservice(ws, name='digits-svc')`` returns it as an instance of its subclass.

    Args:
        workspace: The workspace that contains the service.
        name: Name of the service.

    Raises:
        WebserviceException: No service has this name.
    """

    _kind = ""  # the kind that a subclass represents

    def __new__(cls, workspace: Workspace, name: str, **rest: Any) -> Webservice:
        if cls is not Webservice:
            return super().__new__(cls)
        from runyard.sdk.webservice.kinds import webservice_class

        view = rest.get("_view") or workspace.connection.get(f"{_ROUTE}/{_text(name)}")
        return super().__new__(webservice_class(view["kind"]))

    def __init__(self, workspace: Workspace, name: str, **rest: Any) -> None:
        self.workspace = workspace
        self.name = _text(name)
        self._load(rest.get("_view") or workspace.connection.get(f"{_ROUTE}/{self.name}"))

    @staticmethod
    def list(
        workspace: Workspace,
        compute_type: Optional[str] = None,
        image_name: Optional[str] = None,
        image_id: Optional[str] = None,
        model_name: Optional[str] = None,
        model_id: Optional[str] = None,
        tags: Optional[Labels] = None,
        properties: Optional[Labels] = None,
        image_digest: Optional[str] = None,
    ) -> Webservices:
        """Return the services that match all criteria. ``tags`` are keys, or pairs of key and value."""
        services = [Webservice(workspace, view["name"], _view=view) for view in workspace.connection.get(_ROUTE)]
        return [
            service
            for service in services
            if (compute_type is None or service.compute_type.lower() == compute_type.lower())
            and (image_name is None or (service.image_id or "").partition(":")[0] == image_name)
            and (image_id is None or service.image_id == image_id)
            and (image_digest is None)
            and (model_name is None or any(model.partition(":")[0] == model_name for model in service.model_ids))
            and (model_id is None or model_id in service.model_ids)
            and has_labels(service.tags, tags)
            and has_labels(service.properties, properties)
        ]

    @staticmethod
    def deploy_from_model(
        workspace: Workspace,
        name: str,
        models: Labels,
        image_config: Any,
        deployment_config: Any = None,
        deployment_target: Any = None,
        overwrite: bool = False,
    ) -> Webservice:
        from runyard.sdk.webservice import deploy

        return deploy.deploy(
            workspace, name, models, image_config, deployment_config, deployment_target, overwrite, False
        )

    @staticmethod
    def deploy_from_image(
        workspace: Workspace,
        name: str,
        image: Any,
        deployment_config: Any = None,
        deployment_target: Any = None,
        overwrite: bool = False,
    ) -> Webservice:
        from runyard.sdk.webservice import deploy

        return deploy.deploy_image(workspace, name, image, deployment_config, deployment_target, overwrite)

    @staticmethod
    def deploy(
        workspace: Workspace,
        name: str,
        model_paths: Labels,
        image_config: Any,
        deployment_config: Any = None,
        deployment_target: Any = None,
        overwrite: bool = False,
    ) -> Webservice:
        """Deploy local files: each is registered as a model first."""
        from runyard.sdk.model.model import Model
        from runyard.sdk.webservice import deploy

        models = [Model.register(workspace, path, deploy.model_name_from_path(path)) for path in model_paths]
        return deploy.deploy(
            workspace, name, models, image_config, deployment_config, deployment_target, overwrite, False
        )

    @staticmethod
    def deploy_local_from_model(
        workspace: Workspace,
        name: str,
        models: Labels,
        image_config: Any,
        deployment_config: Any = None,
        wait: bool = False,
    ) -> Webservice:
        from runyard.sdk.webservice import deploy
        from runyard.sdk.webservice.kinds import LocalWebservice

        config = deployment_config or LocalWebservice.deploy_configuration()
        service = deploy.deploy(workspace, name, models, image_config, config, None, False, False)
        if wait:
            service.wait_for_deployment(show_output=True)
        return service

    @staticmethod
    def check_for_existing_webservice(
        workspace: Workspace, name: str, overwrite: bool = False, request_func: Any = None, check_func: Any = None
    ) -> None:
        """Raise WebserviceException if the name exists and ``overwrite`` is False."""
        exists = any(view["name"] == name for view in workspace.connection.get(_ROUTE))
        if exists and not overwrite:
            raise WebserviceException(f"a service named {name!r} exists already", hint="overwrite=True replaces it")

    @classmethod
    def deserialize(cls, workspace: Workspace, webservice_payload: dict[str, Any]) -> Webservice:
        """Return the current state of the service that ``serialize`` described."""
        if not isinstance(webservice_payload, dict) or "name" not in webservice_payload:
            raise WebserviceException("webservice_payload must be the result of serialize(), a dict with a 'name'")
        return Webservice(workspace, webservice_payload["name"])

    @property
    def state(self) -> str:
        """``Transitioning``, ``Healthy``, ``Unhealthy`` or ``Failed``, as of the last update."""
        return str(self._view["state"])

    @property
    def scoring_uri(self) -> str:
        return str(self._view["scoring_uri"])

    @property
    def swagger_uri(self) -> str:
        return str(self._view["swagger_uri"])

    @property
    def model_ids(self) -> Labels:
        """Ids of the models of the versions that receive requests."""
        serving = [version for version in self._view["versions"] if version["traffic"] or not self._view["traffic"]]
        return list(dict.fromkeys(model for version in serving for model in version["models"]))

    @property
    def models(self) -> Labels:
        from runyard.sdk.model.model import Model

        return [Model(self.workspace, id=model) for model in self.model_ids]

    @property
    def versions(self) -> dict[int, int]:
        """Share of the requests in percent, by version."""
        return {int(version): share for version, share in self._view["traffic"].items()}

    def update_deployment_state(self) -> None:
        """Read the current state from the yard."""
        self._load(self.workspace.connection.get(f"{_ROUTE}/{self.name}"))

    def wait_for_deployment(self, show_output: bool = False, timeout_sec: Optional[float] = None) -> None:
        """Wait until the service answers requests.

        Args:
            show_output: Print the progress.
            timeout_sec: Seconds to wait; default: without limit.

        Raises:
            WebserviceException: The deployment failed, or the timeout has passed.
        """
        from runyard.sdk.webservice.waiting import wait

        wait(self, show_output, timeout_sec)

    def run(self, input: Any) -> Any:
        """Send a request and return the response.

        Args:
            input: Text, bytes, or a value that can be converted to JSON.

        Raises:
            WebserviceException: The service cannot be reached, or returned an error.
        """
        return self._run(input)

    def get_logs(self, num_lines: int = 5000, init: bool = False) -> str:
        """Return the log of the deployment and the output of the scoring script."""
        if isinstance(num_lines, bool) or not isinstance(num_lines, int) or num_lines < 1:
            raise UserErrorException(f"num_lines must be a whole number above 0, got {num_lines!r}")
        from runyard.sdk.azureml.no_effect import warn_ignored

        warn_ignored("Webservice.get_logs", "init", init or None, "a service has a single log")
        return str(self.workspace.connection.get(f"{_ROUTE}/{self.name}/logs", lines=num_lines)["text"])

    def get_keys(self) -> tuple[str, str]:
        """Return two keys. Both are valid, so that one can be replaced while the other is in use."""
        keys = self.workspace.connection.get(f"{_ROUTE}/{self.name}/keys")
        return keys["primary"], keys["secondary"]

    def regen_key(self, key: str, set_key: Optional[str] = None) -> None:
        """Replace a key; the old one becomes invalid.

        Args:
            key: 'Primary' or 'Secondary'.
            set_key: The new key; generated by default.
        """
        if not isinstance(key, str) or key.lower() not in ("primary", "secondary"):
            raise WebserviceException(f"key must be 'Primary' or 'Secondary', got {key!r}")
        self.workspace.connection.post(f"{_ROUTE}/{self.name}/keys", {"which": key.lower(), "value": set_key})

    def get_token(self) -> Any:
        raise WebserviceException("services have keys here instead of tokens", hint="service.get_keys()")

    def update(self, *args: Any, **changes: Any) -> None:
        """Change the service; the subclasses define the parameters."""
        if args:
            raise WebserviceException("pass changes as keyword arguments: service.update(tags={…})")
        self._update(**changes)

    def create_version(
        self, traffic_percentile: int, models: Optional[Labels] = None, inference_config: Any = None
    ) -> int:
        """Deploy another version behind the same name.

        Args:
            traffic_percentile: Its share of the requests in percent.
            models: Models to serve; default: those of the present version.
            inference_config: Scoring script and environment; default: those of the present version.

        Returns: The number of the new version.
        """
        from runyard.sdk.webservice import deploy

        request: dict[str, Any] = {"traffic_percentile": traffic_percentile}
        request.update(deploy.version_request(self.workspace, models, inference_config))
        self._load(self.workspace.connection.post(f"{_ROUTE}/{self.name}/versions", request))
        return int(self._view["versions"][-1]["version"])

    def set_traffic(self, shares: dict[int, int]) -> None:
        """Set the share of each version in percent: ``{1: 90, 2: 10}``. A version without a share is stopped."""
        body = {str(version): share for version, share in shares.items()}
        self._load(self.workspace.connection.post(f"{_ROUTE}/{self.name}/traffic", body))

    def delete_version(self, version: int) -> None:
        """Stop a version; the version with the largest share takes over its requests."""
        rest = {number: share for number, share in self.versions.items() if number != int(version)}
        if not rest:
            raise WebserviceException(f"version {version} is the last one of {self.name!r}", hint="service.delete()")
        largest = max(rest, key=lambda number: rest[number])
        self.set_traffic({**rest, largest: rest[largest] + self.versions.get(int(version), 0)})

    def stats(self) -> dict[str, Any]:
        """Return counts of requests, failures and latencies, and a time series of the last minutes."""
        return dict(self.workspace.connection.get(f"{_ROUTE}/{self.name}/stats"))

    def add_tags(self, tags: dict[str, Any]) -> None:
        self._patch(tags={**self.tags, **as_labels(tags, "tags")})

    def remove_tags(self, tags: Any) -> None:
        removed = [tags] if isinstance(tags, str) else list(tags)
        self._patch(tags={key: value for key, value in self.tags.items() if key not in removed})

    def add_properties(self, properties: dict[str, Any]) -> None:
        added = as_labels(properties, "properties")
        changed = [key for key, value in added.items() if self.properties.get(key, value) != value]
        if changed:
            raise WebserviceException(f"the properties {', '.join(changed)} cannot be changed", hint="use a tag")
        self._patch(properties={**self.properties, **added})

    def delete(self) -> None:
        """Stop the service and free its name."""
        self.workspace.connection.delete(f"{_ROUTE}/{self.name}")

    def serialize(self) -> dict[str, Any]:
        view = self._view
        return {
            "name": self.name,
            "computeType": self.compute_type,
            "state": self.state,
            "error": self.error,
            "description": self.description,
            "tags": self.tags,
            "properties": self.properties,
            "createdTime": self.created_time.isoformat(),
            "updatedTime": self.updated_time.isoformat(),
            "createdBy": self.created_by,
            "scoringUri": self.scoring_uri,
            "swaggerUri": self.swagger_uri,
            "authEnabled": self.auth_enabled,
            "imageId": self.image_id,
            "modelIds": self.model_ids,
            "traffic": dict(view["traffic"]),
            "configuration": dict(view["configuration"]),
        }

    def _run(self, input: Any) -> Any:
        from runyard.sdk.webservice.client import call

        key = self.get_keys()[0] if self.auth_enabled else None
        return call(self.scoring_uri, input, key, float(self._view["configuration"]["limits"]["timeout_s"]))

    def _update(
        self,
        tags: Any = None,
        properties: Any = None,
        description: Optional[str] = None,
        models: Optional[Labels] = None,
        inference_config: Any = None,
        image: Any = None,
        **settings: Any,
    ) -> None:
        from runyard.sdk.webservice import deploy

        body = deploy.version_request(self.workspace, models, inference_config, image)
        if tags is not None:
            body["tags"] = as_labels(tags, "tags")
        if properties is not None:
            body["properties"] = {**self.properties, **as_labels(properties, "properties")}
        if description is not None:
            body["description"] = description
        configuration = {name: value for name, value in settings.items() if value is not None}
        if isinstance(configuration.get("batching"), bool):
            configuration["batching"] = {} if configuration["batching"] else None
        if configuration:
            body["configuration"] = configuration
        if not body:
            raise WebserviceException("update needs a change", hint="service.update(models=[…]), tags={…}, …")
        self._load(self.workspace.connection.patch(f"{_ROUTE}/{self.name}", body))

    def _patch(self, **values: Any) -> None:
        self._load(self.workspace.connection.patch(f"{_ROUTE}/{self.name}", values))

    def _load(self, view: dict[str, Any]) -> None:
        if self._kind and view["kind"] != self._kind:
            raise WebserviceException(
                f"the service {view['name']!r} is of kind {view['kind']}", hint=f"Webservice(ws, {view['name']!r})"
            )
        self._view = view
        self.compute_type: str = view["kind"]
        self.error: str = view["error"]
        self.description: Optional[str] = view["description"]
        self.tags: dict[str, Any] = dict(view["tags"])
        self.properties: dict[str, Any] = dict(view["properties"])
        self.auth_enabled: bool = view["configuration"]["auth_enabled"]
        self.created_by: Optional[str] = view["created_by"]
        self.created_time = datetime.fromtimestamp(view["created_at"], timezone.utc)
        self.updated_time = datetime.fromtimestamp(view["changed_at"], timezone.utc)
        self.image_id: Optional[str] = self.properties.get("image_id")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(workspace={self.workspace!r}, name={self.name}, state={self.state})"

    def _repr_html_(self) -> str:
        from runyard.sdk.core.display import table_html

        shares = ", ".join(f"{version}: {share} %" for version, share in self.versions.items())
        rows = {"Service": self.name, "State": self.state, "Scoring URI": self.scoring_uri, "Versions": shares}
        return table_html({**rows, "Models": ", ".join(self.model_ids)})


def _text(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise WebserviceException(f"the name of a service must be text, got {name!r}")
    return name


def has_labels(labels: dict[str, Any], required: Optional[Labels]) -> bool:
    from runyard.sdk.core.labels import label_query

    query = json.loads(label_query(required, "tags") or "{}")
    return all(key in labels and (value is None or labels[key] == value) for key, value in query.items())
