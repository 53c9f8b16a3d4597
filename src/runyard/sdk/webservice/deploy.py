"""Deployment of models and a scoring script as a service."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from runyard.errors import WebserviceException
from runyard.sdk.webservice.configuration import WebserviceDeploymentConfiguration, report_ignored
from runyard.sdk.webservice.webservice import Webservice

if TYPE_CHECKING:
    from runyard.sdk.core.workspace import Workspace


def deploy(
    workspace: Workspace,
    name: str,
    models: Any,
    inference_config: Any = None,
    deployment_config: Any = None,
    deployment_target: Any = None,
    overwrite: bool = False,
    show_output: bool = False,
) -> Webservice:
    """Deploy models; without an ``inference_config``, a single ONNX model is served directly."""
    report_ignored("Model.deploy", {"deployment_target": deployment_target})
    version = version_request(workspace, models or [], inference_config)
    service = _post(workspace, name, version, deployment_config, overwrite)
    if show_output:
        service.wait_for_deployment(show_output=True)
    return service


def deploy_image(
    workspace: Workspace, name: str, image: Any, deployment_config: Any, deployment_target: Any, overwrite: bool
) -> Webservice:
    report_ignored("Webservice.deploy_from_image", {"deployment_target": deployment_target})
    return _post(workspace, name, version_request(workspace, None, None, image), deployment_config, overwrite, image.id)


def version_request(
    workspace: Workspace, models: Any = None, inference_config: Any = None, image: Any = None
) -> dict[str, Any]:
    """Upload the code and return the ``models`` and the ``spec`` of a request, as far as they are given."""
    if image is not None:
        return {"models": list(image.model_ids), "spec": dict(image._view["spec"])}
    request: dict[str, Any] = {}
    if models is not None:
        request["models"] = model_ids_of(models)
    if inference_config is not None:
        if not hasattr(inference_config, "_spec"):
            raise WebserviceException(
                f"inference_config must be an InferenceConfig, got {inference_config!r}",
                hint="InferenceConfig(entry_script='score.py', environment=env)",
            )
        request["spec"] = inference_config._spec(workspace)
    return request


def model_ids_of(models: Any) -> list[str]:
    if isinstance(models, str) or hasattr(models, "id"):
        models = [models]
    ids = []
    for model in models:
        model_id = getattr(model, "id", model)
        if not isinstance(model_id, str) or not model_id:
            raise WebserviceException(f"models must be models or their names, got {model!r}")
        ids.append(model_id)
    return ids


def model_name_from_path(path: Any) -> str:
    """Return a valid model name that resembles the file's name."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", Path(str(path)).name).lstrip("._-") or "model"


def print_configuration(models: Any, inference_config: Any, deployment_config: Any, deployment_target: Any) -> None:
    config = deployment_config or _default()
    environment = getattr(inference_config, "environment", None)
    lines = [
        f"Models: {', '.join(model_ids_of(models))}",
        f"Scoring script: {getattr(inference_config, 'entry_script', None) or 'none (the model is served directly)'}",
        f"Environment: {getattr(environment, 'name', None) or 'same as the training run'}",
        f"Service: {config!r}",
    ]
    sys.stdout.write("\n".join(lines) + "\n")


def _post(
    workspace: Workspace,
    name: str,
    version: dict[str, Any],
    deployment_config: Any,
    overwrite: bool,
    image_id: Optional[str] = None,
) -> Webservice:
    from runyard.sdk.training.submit import user_name

    if not isinstance(name, str):
        raise WebserviceException(f"the name of a service must be text, got {name!r}")
    config = deployment_config or _default()
    if not isinstance(config, WebserviceDeploymentConfiguration):
        raise WebserviceException(
            f"deployment_config must be the result of LocalWebservice.deploy_configuration(…), got {config!r}"
        )
    request = {**config._request(), **version, "name": name, "overwrite": bool(overwrite), "created_by": user_name()}
    if image_id is not None:
        request["properties"] = {**request["properties"], "image_id": image_id}
    view = workspace.connection.post("/api/services", request)
    return Webservice(workspace, name, _view=view)


def _default() -> WebserviceDeploymentConfiguration:
    from runyard.sdk.webservice.configuration import AciServiceDeploymentConfiguration

    return AciServiceDeploymentConfiguration()
