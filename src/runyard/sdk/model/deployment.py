"""Deployment methods of the `Model` class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runyard.errors import WebserviceException

if TYPE_CHECKING:
    from runyard.sdk.core.workspace import Workspace

Values = list[Any]


class ModelDeployment:
    """Static methods that deploy models as web services."""

    @staticmethod
    def deploy(
        workspace: Workspace,
        name: str,
        models: Values,
        inference_config: Any = None,
        deployment_config: Any = None,
        deployment_target: Any = None,
        overwrite: bool = False,
        show_output: bool = False,
    ) -> Any:
        """Deploy models as a web service. Returns immediately; ``service.wait_for_deployment()`` waits.

        Args:
            workspace: The workspace that contains the models.
            name: Name of the service.
            models: Models, or their names or ids.
            inference_config: Scoring script and environment. Not necessary for a single ONNX model.
            deployment_config: Result of ``LocalWebservice.deploy_configuration(...)`` or of another kind of service.
            deployment_target: Has no effect.
            overwrite: Replace a service of the same name.
            show_output: Wait until the service is ready, and print the progress.

        Returns:
            The service.
        """
        from runyard.sdk.webservice import deploy

        return deploy.deploy(
            workspace, name, models, inference_config, deployment_config, deployment_target, overwrite, show_output
        )

    @staticmethod
    def package(
        workspace: Workspace,
        models: Values,
        inference_config: Any = None,
        generate_dockerfile: bool = False,
        image_name: str | None = None,
        image_label: str | None = None,
    ) -> Any:
        raise WebserviceException(
            "a yard does not build container images of models",
            hint="Model.deploy(…) serves them on this machine; model.download(…) gets the files for your own image",
        )

    @staticmethod
    def profile(
        workspace: Workspace,
        profile_name: str,
        models: Values,
        inference_config: Any,
        input_dataset: Any,
        cpu: float | None = None,
        memory_in_gb: float | None = None,
        description: str | None = None,
    ) -> Any:
        raise WebserviceException(
            "a yard does not profile models: measure the running service with service.stats(), or /metrics"
        )

    @staticmethod
    def print_configuration(
        models: Values, inference_config: Any, deployment_config: Any, deployment_target: Any
    ) -> None:
        from runyard.sdk.webservice import deploy

        deploy.print_configuration(models, inference_config, deployment_config, deployment_target)
