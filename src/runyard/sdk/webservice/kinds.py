"""The kinds of services of the SDK v1. Here they differ only in the parameters of their configurations."""

from __future__ import annotations

from typing import Any, Optional, Union

from runyard.sdk.webservice.configuration import (
    AciServiceDeploymentConfiguration,
    AksServiceDeploymentConfiguration,
    LocalWebserviceDeploymentConfiguration,
    report_ignored,
)
from runyard.sdk.webservice.webservice import Webservice

Batching = Union[bool, dict[str, Any], None]


def webservice_class(kind: str) -> type[Webservice]:
    return {"ACI": AciWebservice, "AKS": AksWebservice}.get(kind, LocalWebservice)


class _NamedInput(Webservice):
    def run(self, input_data: Any) -> Any:
        """Send a request and return the response; see ``Webservice.run``."""
        return self._run(input_data)


class LocalWebservice(_NamedInput):
    """A service on this machine."""

    _kind = "Local"

    @staticmethod
    def deploy_configuration(
        port: Optional[int] = None,
        *,
        auth_enabled: bool = False,
        workers: Optional[int] = None,
        host: Optional[str] = None,
        limits: Optional[dict[str, Any]] = None,
        batching: Batching = None,
        tags: Optional[dict[str, Any]] = None,
        properties: Optional[dict[str, Any]] = None,
        description: Optional[str] = None,
    ) -> LocalWebserviceDeploymentConfiguration:
        """Return a configuration for ``Model.deploy``; see ``WebserviceDeploymentConfiguration`` for the parameters."""
        return LocalWebserviceDeploymentConfiguration(
            port=port,
            auth_enabled=auth_enabled,
            workers=workers,
            host=host,
            limits=limits,
            batching=batching,
            tags=tags,
            properties=properties,
            description=description,
        )

    @property
    def port(self) -> int:
        return int(self._view["configuration"]["port"])

    @property
    def base_url(self) -> str:
        return self.scoring_uri.rpartition("/")[0]

    def reload(self, wait: bool = False) -> None:
        """Restart the workers, one version after the other, without losing requests."""
        self._update(models=list(self.model_ids))
        if wait:
            self.wait_for_deployment()

    def update(
        self,
        models: Any = None,
        image_config: Any = None,
        deployment_config: Any = None,
        wait: bool = False,
        inference_config: Any = None,
        **settings: Any,
    ) -> None:
        """Deploy a new version that replaces the old one when it is ready, without losing requests."""
        if deployment_config is not None:
            settings = {**deployment_config._settings(), **settings}
        self._update(models=models, inference_config=inference_config or image_config, **settings)
        if wait:
            self.wait_for_deployment()

    def delete(self, delete_cache: bool = True, delete_image: bool = False) -> None:
        super().delete()


class AciWebservice(_NamedInput):
    """A service that the SDK v1 ran in Azure Container Instances; here it runs on this machine."""

    _kind = "ACI"

    @staticmethod
    def deploy_configuration(
        cpu_cores: Optional[float] = None,
        memory_gb: Optional[float] = None,
        tags: Optional[dict[str, Any]] = None,
        properties: Optional[dict[str, Any]] = None,
        description: Optional[str] = None,
        location: Optional[str] = None,
        auth_enabled: Optional[bool] = None,
        ssl_enabled: Optional[bool] = None,
        enable_app_insights: Optional[bool] = None,
        ssl_cert_pem_file: Optional[str] = None,
        ssl_key_pem_file: Optional[str] = None,
        ssl_cname: Optional[str] = None,
        dns_name_label: Optional[str] = None,
        primary_key: Optional[str] = None,
        secondary_key: Optional[str] = None,
        collect_model_data: Optional[bool] = None,
        cmk_vault_base_url: Optional[str] = None,
        cmk_key_name: Optional[str] = None,
        cmk_key_version: Optional[str] = None,
        vnet_name: Optional[str] = None,
        subnet_name: Optional[str] = None,
        *,
        workers: Optional[int] = None,
        host: Optional[str] = None,
        port: Optional[int] = None,
        limits: Optional[dict[str, Any]] = None,
        batching: Batching = None,
    ) -> AciServiceDeploymentConfiguration:
        """Return a configuration for ``Model.deploy``; see ``WebserviceDeploymentConfiguration`` for the parameters."""
        config = AciServiceDeploymentConfiguration(
            cpu_cores,
            memory_gb,
            tags=tags,
            properties=properties,
            description=description,
            auth_enabled=bool(auth_enabled),
            primary_key=primary_key,
            secondary_key=secondary_key,
            workers=workers,
            host=host,
            port=port,
            limits=limits,
            batching=batching,
        )
        report_ignored(
            config,
            {
                "location": location,
                "ssl_enabled": ssl_enabled,
                "enable_app_insights": enable_app_insights,
                "ssl_cert_pem_file": ssl_cert_pem_file,
                "ssl_key_pem_file": ssl_key_pem_file,
                "ssl_cname": ssl_cname,
                "dns_name_label": dns_name_label,
                "collect_model_data": collect_model_data,
                "cmk_vault_base_url": cmk_vault_base_url,
                "cmk_key_name": cmk_key_name,
                "cmk_key_version": cmk_key_version,
                "vnet_name": vnet_name,
                "subnet_name": subnet_name,
            },
        )
        return config

    def update(
        self,
        image: Any = None,
        tags: Optional[dict[str, Any]] = None,
        properties: Optional[dict[str, Any]] = None,
        description: Optional[str] = None,
        auth_enabled: Optional[bool] = None,
        ssl_enabled: Optional[bool] = None,
        ssl_cert_pem_file: Optional[str] = None,
        ssl_key_pem_file: Optional[str] = None,
        ssl_cname: Optional[str] = None,
        enable_app_insights: Optional[bool] = None,
        models: Any = None,
        inference_config: Any = None,
        *,
        workers: Optional[int] = None,
        limits: Optional[dict[str, Any]] = None,
        batching: Batching = None,
    ) -> None:
        """Change the service. Models, a script or an image create a version that replaces the old one when ready."""
        unused = {
            "ssl_enabled": ssl_enabled,
            "ssl_cert_pem_file": ssl_cert_pem_file,
            "ssl_key_pem_file": ssl_key_pem_file,
            "ssl_cname": ssl_cname,
            "enable_app_insights": enable_app_insights,
        }
        report_ignored(self, unused)
        self._update(
            tags=tags,
            properties=properties,
            description=description,
            models=models,
            inference_config=inference_config,
            image=image,
            auth_enabled=auth_enabled,
            workers=workers,
            limits=limits,
            batching=batching,
        )


class AksWebservice(_NamedInput):
    """A service that the SDK v1 ran on Kubernetes; here it runs on this machine."""

    _kind = "AKS"

    @staticmethod
    def deploy_configuration(
        autoscale_enabled: Optional[bool] = None,
        autoscale_min_replicas: Optional[int] = None,
        autoscale_max_replicas: Optional[int] = None,
        autoscale_refresh_seconds: Optional[int] = None,
        autoscale_target_utilization: Optional[int] = None,
        collect_model_data: Optional[bool] = None,
        auth_enabled: Optional[bool] = None,
        cpu_cores: Optional[float] = None,
        memory_gb: Optional[float] = None,
        enable_app_insights: Optional[bool] = None,
        scoring_timeout_ms: Optional[int] = None,
        replica_max_concurrent_requests: Optional[int] = None,
        max_request_wait_time: Optional[int] = None,
        num_replicas: Optional[int] = None,
        primary_key: Optional[str] = None,
        secondary_key: Optional[str] = None,
        tags: Optional[dict[str, Any]] = None,
        properties: Optional[dict[str, Any]] = None,
        description: Optional[str] = None,
        gpu_cores: Optional[int] = None,
        period_seconds: Optional[int] = None,
        initial_delay_seconds: Optional[int] = None,
        timeout_seconds: Optional[int] = None,
        success_threshold: Optional[int] = None,
        failure_threshold: Optional[int] = None,
        namespace: Optional[str] = None,
        token_auth_enabled: Optional[bool] = None,
        compute_target_name: Optional[str] = None,
        cpu_cores_limit: Optional[float] = None,
        memory_gb_limit: Optional[float] = None,
        blobfuse_enabled: Optional[bool] = None,
        *,
        host: Optional[str] = None,
        port: Optional[int] = None,
        limits: Optional[dict[str, Any]] = None,
        batching: Batching = None,
    ) -> AksServiceDeploymentConfiguration:
        """Return a configuration for ``Model.deploy``.

        The number of workers is ``num_replicas``, or ``autoscale_max_replicas`` if autoscaling is enabled.
        Authentication with keys is enabled by default.
        """
        all_limits = {**_limits(scoring_timeout_ms, replica_max_concurrent_requests), **(limits or {})}
        config = AksServiceDeploymentConfiguration(
            cpu_cores,
            memory_gb,
            tags=tags,
            properties=properties,
            description=description,
            auth_enabled=True if auth_enabled is None else auth_enabled,
            primary_key=primary_key,
            secondary_key=secondary_key,
            workers=num_replicas or (autoscale_max_replicas if autoscale_enabled else None),
            host=host,
            port=port,
            limits=all_limits,
            batching=batching,
        )
        report_ignored(
            config,
            {
                "autoscale_min_replicas": autoscale_min_replicas,
                "autoscale_refresh_seconds": autoscale_refresh_seconds,
                "autoscale_target_utilization": autoscale_target_utilization,
                "collect_model_data": collect_model_data,
                "enable_app_insights": enable_app_insights,
                "max_request_wait_time": max_request_wait_time,
                "gpu_cores": gpu_cores,
                "period_seconds": period_seconds,
                "initial_delay_seconds": initial_delay_seconds,
                "timeout_seconds": timeout_seconds,
                "success_threshold": success_threshold,
                "failure_threshold": failure_threshold,
                "namespace": namespace,
                "token_auth_enabled": token_auth_enabled,
                "compute_target_name": compute_target_name,
                "cpu_cores_limit": cpu_cores_limit,
                "memory_gb_limit": memory_gb_limit,
                "blobfuse_enabled": blobfuse_enabled,
            },
        )
        return config

    def update(
        self,
        image: Any = None,
        autoscale_enabled: Optional[bool] = None,
        autoscale_min_replicas: Optional[int] = None,
        autoscale_max_replicas: Optional[int] = None,
        autoscale_refresh_seconds: Optional[int] = None,
        autoscale_target_utilization: Optional[int] = None,
        collect_model_data: Optional[bool] = None,
        auth_enabled: Optional[bool] = None,
        cpu_cores: Optional[float] = None,
        memory_gb: Optional[float] = None,
        enable_app_insights: Optional[bool] = None,
        scoring_timeout_ms: Optional[int] = None,
        replica_max_concurrent_requests: Optional[int] = None,
        max_request_wait_time: Optional[int] = None,
        num_replicas: Optional[int] = None,
        tags: Optional[dict[str, Any]] = None,
        properties: Optional[dict[str, Any]] = None,
        description: Optional[str] = None,
        models: Any = None,
        inference_config: Any = None,
        *,
        batching: Batching = None,
    ) -> None:
        """Change the service. Models, a script or an image create a version that replaces the old one when ready."""
        unused = {
            "autoscale_min_replicas": autoscale_min_replicas,
            "autoscale_refresh_seconds": autoscale_refresh_seconds,
            "autoscale_target_utilization": autoscale_target_utilization,
            "collect_model_data": collect_model_data,
            "cpu_cores_limit": cpu_cores,
            "memory_gb_limit": memory_gb,
            "enable_app_insights": enable_app_insights,
            "max_request_wait_time": max_request_wait_time,
        }
        report_ignored(self, unused)
        self._update(
            tags=tags,
            properties=properties,
            description=description,
            models=models,
            inference_config=inference_config,
            image=image,
            auth_enabled=auth_enabled,
            workers=num_replicas or (autoscale_max_replicas if autoscale_enabled else None),
            limits=_limits(scoring_timeout_ms, replica_max_concurrent_requests) or None,
            batching=batching,
        )


def _limits(scoring_timeout_ms: Optional[int], max_concurrent_requests: Optional[int]) -> dict[str, Any]:
    timeout_s = None if scoring_timeout_ms is None else scoring_timeout_ms / 1e3
    limits = {"timeout_s": timeout_s, "waiting": max_concurrent_requests}
    return {name: value for name, value in limits.items() if value is not None}
