"""How a service is deployed, as the SDK v1 called it for its clouds. All of them give a service on this yard."""

from __future__ import annotations

from typing import Any, Optional, Union

from runyard.errors import WebserviceException
from runyard.sdk.azureml.no_effect import warn_ignored
from runyard.sdk.core.labels import as_labels
from runyard.sdk.core.validation import log

_WHOLE_MACHINE = "a service is not bounded: it has what the machine has"
_NO_TLS = "services speak HTTP on this machine; put a proxy that has the certificate before them"
_NO_CLOUD = "services run on this machine"
_LOGS = "requests are always logged and counted: service.get_logs(), /metrics"


class WebserviceDeploymentConfiguration:
    """``workers`` processes answer requests; ``batching`` scores requests for an ONNX model together.

    ``batching`` is True, or ``{"largest": 32, "wait_ms": 2}``. ``limits``: ``body_mb``, ``bodies_mb``,
    ``timeout_s``, ``waiting``, ``connections``, ``receive_s``, ``idle_s``.
    """

    kind = "Local"

    def __init__(
        self,
        *,
        description: Optional[str] = None,
        tags: Optional[dict[str, Any]] = None,
        properties: Optional[dict[str, Any]] = None,
        auth_enabled: bool = False,
        primary_key: Optional[str] = None,
        secondary_key: Optional[str] = None,
        workers: Optional[int] = None,
        host: Optional[str] = None,
        port: Optional[int] = None,
        limits: Optional[dict[str, Any]] = None,
        batching: Union[bool, dict[str, Any], None] = None,
    ) -> None:
        self.description = description
        self.tags = as_labels(tags, "tags")
        self.properties = as_labels(properties, "properties")
        self.auth_enabled = bool(auth_enabled)
        self.primary_key, self.secondary_key = primary_key, secondary_key
        self.workers, self.host, self.port = workers, host, port
        self.limits = dict(limits or {})
        self.batching = batching
        self.validate_configuration()

    def validate_configuration(self) -> None:
        for name, value in (("port", self.port), ("workers", self.workers)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise WebserviceException(f"{name} must be a whole number above 0, not {value!r}")
        if bool(self.primary_key) != bool(self.secondary_key):
            raise WebserviceException("primary_key and secondary_key are given together, or neither")
        if self.host not in (None, "127.0.0.1", "::1", "localhost") and not self.auth_enabled:
            log.warning("whoever reaches %s may call the service: auth_enabled=True asks for a key", self.host)

    def _request(self) -> dict[str, Any]:
        """Its part of a DeployService."""
        return {
            "kind": self.kind,
            "configuration": self._settings(),
            "description": self.description,
            "tags": self.tags,
            "properties": self.properties,
            "keys": [key for key in (self.primary_key, self.secondary_key) if key],
        }

    def _settings(self) -> dict[str, Any]:
        found: dict[str, Any] = {"auth_enabled": self.auth_enabled}
        for name in ("workers", "host", "port"):
            if getattr(self, name) is not None:
                found[name] = getattr(self, name)
        if self.limits:
            found["limits"] = self.limits
        if self.batching:
            found["batching"] = {} if self.batching is True else dict(self.batching)
        return found

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._settings()})"


class LocalWebserviceDeploymentConfiguration(WebserviceDeploymentConfiguration):
    kind = "Local"


class AciServiceDeploymentConfiguration(WebserviceDeploymentConfiguration):
    kind = "ACI"

    def __init__(self, cpu_cores: Optional[float] = None, memory_gb: Optional[float] = None, **settings: Any) -> None:
        self.cpu_cores, self.memory_gb = cpu_cores, memory_gb
        super().__init__(**settings)

    def validate_configuration(self) -> None:
        for name in ("cpu_cores", "memory_gb"):
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
                raise WebserviceException(f"{name} must be a number above 0, not {value!r}")
            warn_ignored(self, name, value, _WHOLE_MACHINE)
        super().validate_configuration()


class AksServiceDeploymentConfiguration(AciServiceDeploymentConfiguration):
    kind = "AKS"


def report_ignored(owner: Any, given: dict[str, Any]) -> None:
    """Of arguments that mean nothing here, each once."""
    why = {
        "location": _NO_CLOUD,
        "ssl_enabled": _NO_TLS,
        "ssl_cert_pem_file": _NO_TLS,
        "ssl_key_pem_file": _NO_TLS,
        "ssl_cname": _NO_TLS,
        "enable_app_insights": _LOGS,
        "dns_name_label": _NO_CLOUD,
        "collect_model_data": _LOGS,
        "cmk_vault_base_url": _NO_CLOUD,
        "cmk_key_name": _NO_CLOUD,
        "cmk_key_version": _NO_CLOUD,
        "vnet_name": _NO_CLOUD,
        "subnet_name": _NO_CLOUD,
        "namespace": _NO_CLOUD,
        "compute_target_name": _NO_CLOUD,
        "deployment_target": _NO_CLOUD,
        "cpu_cores_limit": _WHOLE_MACHINE,
        "memory_gb_limit": _WHOLE_MACHINE,
        "gpu_cores": "a service sees the GPUs of this machine",
        "blobfuse_enabled": _NO_CLOUD,
        "period_seconds": "a worker that has died is known at once",
        "initial_delay_seconds": "a worker says itself when it is ready",
        "timeout_seconds": "a worker that has died is known at once",
        "success_threshold": "a worker says itself when it is ready",
        "failure_threshold": "a worker that has died is known at once",
        "token_auth_enabled": "services have keys, and no tokens",
        "autoscale_refresh_seconds": "the number of workers is fixed",
        "autoscale_target_utilization": "the number of workers is fixed",
        "autoscale_min_replicas": "the number of workers is fixed",
    }
    for argument, value in given.items():
        warn_ignored(owner, argument, None if value is False else value, why.get(argument, _NO_CLOUD))
