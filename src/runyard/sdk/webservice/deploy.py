"""From models and a scoring script to a service: everything is handed to the yard, which answers at once."""

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

_NO_PROFILES = "services are measured where they run: service.stats(), or /metrics"


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
    """Without a configuration for inference the models speak for themselves: that works for one ONNX model."""
    report_ignored("Model.deploy", {"deployment_target": deployment_target})
    served = version_request(workspace, models or [], inference_config)
    service = _post(workspace, name, served, deployment_config, overwrite)
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
    """``models`` and ``spec`` of a request, of what was given; the code is handed over."""
    if image is not None:
        return {"models": list(image.model_ids), "spec": dict(image._view["spec"])}
    found: dict[str, Any] = {}
    if models is not None:
        found["models"] = model_ids_of(models)
    if inference_config is not None:
        if not hasattr(inference_config, "_spec"):
            raise WebserviceException(
                f"inference_config takes an InferenceConfig, not {inference_config!r}",
                hint="InferenceConfig(entry_script='score.py', environment=env)",
            )
        found["spec"] = inference_config._spec(workspace)
    return found


def model_ids_of(models: Any) -> list[str]:
    if isinstance(models, str) or hasattr(models, "id"):
        models = [models]
    texts = []
    for model in models:
        text = getattr(model, "id", model)
        if not isinstance(text, str) or not text:
            raise WebserviceException(f"models takes models or their names, not {model!r}")
        texts.append(text)
    return texts


def model_name_from_path(path: Any) -> str:
    """A model's name from a file's."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", Path(str(path)).name).lstrip("._-") or "model"


def package(
    workspace: Workspace,
    models: Any,
    inference_config: Any = None,
    generate_dockerfile: bool = False,
    image_name: Optional[str] = None,
    image_label: Optional[str] = None,
) -> Any:
    raise WebserviceException(
        "a yard builds no container images of models",
        hint="Model.deploy(…) serves them on this machine; model.download(…) gives the files for an image of yours",
    )


def profile(
    workspace: Workspace,
    profile_name: str,
    models: Any,
    inference_config: Any,
    input_dataset: Any,
    cpu: Optional[float] = None,
    memory_in_gb: Optional[float] = None,
    description: Optional[str] = None,
) -> Any:
    raise WebserviceException(f"a yard has no profiles of models: {_NO_PROFILES}")


def print_configuration(models: Any, inference_config: Any, deployment_config: Any, deployment_target: Any) -> None:
    config = deployment_config or _default()
    environment = getattr(inference_config, "environment", None)
    lines = [
        f"Models: {', '.join(model_ids_of(models))}",
        f"Scoring script: {getattr(inference_config, 'entry_script', None) or 'none: the model itself'}",
        f"Environment: {getattr(environment, 'name', None) or 'that of the training run'}",
        f"Service: {config!r}",
    ]
    sys.stdout.write("\n".join(lines) + "\n")


def _post(
    workspace: Workspace,
    name: str,
    served: dict[str, Any],
    deployment_config: Any,
    overwrite: bool,
    image_id: Optional[str] = None,
) -> Webservice:
    from runyard.sdk.training.submit import user_name

    if not isinstance(name, str):
        raise WebserviceException(f"the name of a service is text, not {name!r}")
    config = deployment_config or _default()
    if not isinstance(config, WebserviceDeploymentConfiguration):
        raise WebserviceException(
            f"deployment_config takes what LocalWebservice.deploy_configuration(…) gives, not {config!r}"
        )
    request = {**config._request(), **served, "name": name, "overwrite": bool(overwrite), "created_by": user_name()}
    if image_id is not None:
        request["properties"] = {**request["properties"], "image_id": image_id}
    view = workspace.connection.post("/api/services", request)
    return Webservice(workspace, name, _view=view)


def _default() -> WebserviceDeploymentConfiguration:
    from runyard.sdk.webservice.configuration import AciServiceDeploymentConfiguration

    return AciServiceDeploymentConfiguration()
