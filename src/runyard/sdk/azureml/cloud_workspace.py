"""Workspace members that only a cloud had. Each has an equivalent on a yard, does nothing, or raises an error.

A yard has no keys, networks or bills: it is a folder of one user, protected by file permissions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, cast

from runyard.errors import UserErrorException
from runyard.sdk.azureml import no_effect

if TYPE_CHECKING:
    from pathlib import Path

    from runyard.client.connection import Connection
    from runyard.sdk.azureml.keyvault import Keyvault
    from runyard.sdk.compute.amlcompute import AmlComputeProvisioning
    from runyard.sdk.core.workspace import Workspace

NO_SIGN_IN = "a yard needs no sign-in: it belongs to the user who owns its folder"
NAMES_ONLY = "the value is stored in the object and selects nothing"
NO_NETWORKS = "a yard listens on a socket in its owner's folder; no network reaches it"
NO_ACCOUNTS = "a yard stores everything in its home folder"


class _DefaultCluster:
    """Created when it is read: every training script imports workspaces, and few of them create clusters."""

    def __init__(self, vm_size: str) -> None:
        self._vm_size = vm_size

    def __get__(self, instance: Any, owner: Any) -> AmlComputeProvisioning:
        from runyard.sdk.compute.amlcompute import AmlCompute

        return AmlCompute.provisioning_configuration(vm_size=self._vm_size, min_nodes=0, max_nodes=2)


class CloudWorkspace:
    DEFAULT_CPU_CLUSTER_NAME = "cpu-cluster"
    DEFAULT_GPU_CLUSTER_NAME = "gpu-cluster"
    DEFAULT_CPU_CLUSTER_CONFIGURATION = _DefaultCluster("STANDARD_DS2_V2")
    DEFAULT_GPU_CLUSTER_CONFIGURATION = _DefaultCluster("STANDARD_NC6")

    if TYPE_CHECKING:
        name: str
        connection: Connection

        @property
        def home(self) -> Path: ...

    _sku = "basic"
    _tags: Optional[dict[str, str]] = None
    _friendly_name: Optional[str] = None
    _description: Optional[str] = None

    @property
    def sku(self) -> str:
        return self._sku

    @property
    def tags(self) -> dict[str, str]:
        return dict(self._tags or {})

    @property
    def discovery_url(self) -> str:
        """URL of the yard's socket in its home folder."""
        return (self.home / "yard.sock").as_uri()

    @property
    def service_context(self) -> Connection:
        """The connection to the yard."""
        return self.connection

    @property
    def private_endpoints(self) -> dict[str, Any]:
        """Always empty: no network reaches a yard."""
        return {}

    @property
    def linked_services(self) -> list[Any]:
        """Always empty."""
        return []

    def diagnose_workspace(self, diagnose_parameters: Any) -> dict[str, Any]:
        """Return the health of the yard; `runyard doctor` checks the machine."""
        no_effect.warn_ignored(
            self, "diagnose_parameters", diagnose_parameters or None, "they select parts of a cloud to check"
        )
        health = self.connection.get("/api/health")
        return {
            "value": {"userDefinedRouteResults": [], "networkSecurityRuleResults": [], "otherResults": []},
            **health,
        }

    def update(
        self,
        friendly_name: Optional[str] = None,
        description: Optional[str] = None,
        tags: Optional[dict[str, str]] = None,
        image_build_compute: Optional[str] = None,
        service_managed_resources_settings: Any = None,
        primary_user_assigned_identity: Optional[str] = None,
        allow_public_access_when_behind_vnet: Optional[bool] = None,
        v1_legacy_mode: Optional[bool] = None,
    ) -> dict[str, Any]:
        """Change the names of this object; nothing is stored in the yard."""
        self._describe(friendly_name=friendly_name, description=description, tags=tags)
        for argument, value, reason in (
            ("image_build_compute", image_build_compute, "the yard builds environments"),
            ("service_managed_resources_settings", service_managed_resources_settings, NO_ACCOUNTS),
            ("primary_user_assigned_identity", primary_user_assigned_identity, NO_SIGN_IN),
            ("allow_public_access_when_behind_vnet", allow_public_access_when_behind_vnet, NO_NETWORKS),
            ("v1_legacy_mode", v1_legacy_mode, NO_NETWORKS),
        ):
            no_effect.warn_ignored(self, argument, value, reason)
        return {"name": self.name, "friendlyName": self._friendly_name, "description": self._description}

    def update_dependencies(self, container_registry: Optional[str] = None, force: bool = False) -> None:
        no_effect.warn_ignored(
            self, "container_registry", container_registry, "podman or docker pull images with their own sign-in"
        )

    def sync_keys(self, no_wait: bool = False) -> None:
        no_effect.warn_call_ignored("Workspace.sync_keys()", NO_SIGN_IN)

    def add_private_endpoint(
        self,
        private_endpoint_config: Any,
        private_endpoint_auto_approval: bool = True,
        location: Optional[str] = None,
        show_output: bool = True,
        tags: Optional[dict[str, str]] = None,
    ) -> None:
        no_effect.warn_ignored(self, "private_endpoint_config", private_endpoint_config, NO_NETWORKS)

    def delete_private_endpoint_connection(self, private_endpoint_connection_name: str) -> None:
        no_effect.warn_ignored(self, "private_endpoint_connection_name", private_endpoint_connection_name, NO_NETWORKS)

    @staticmethod
    def setup() -> None:
        no_effect.warn_call_ignored("Workspace.setup()", "the first call that needs the yard starts it")

    def delete(self, delete_dependent_resources: bool = False, no_wait: bool = False) -> None:
        """Raise UserErrorException: a script cannot delete a yard with all its runs."""
        raise UserErrorException(
            f"workspace {self.name!r} is a yard with all its runs, and cannot be deleted by a script",
            hint=f"runyard yard stop, and then remove the folder {self.home} yourself",
        )

    def list_keys(self) -> dict[str, Any]:
        """Raise UserErrorException: a yard has no keys."""
        raise UserErrorException(f"workspace {self.name!r} has no keys: {NO_SIGN_IN}")

    def get_default_keyvault(self) -> Keyvault:
        """Return the secrets of the yard, with the methods of the SDK v1."""
        from runyard.sdk.azureml.keyvault import Keyvault

        return Keyvault(cast("Workspace", self))

    def set_connection(self, name: str, category: str, target: str, authType: str, value: str) -> Any:  # noqa: N803
        """Raise UserErrorException: a yard stores no credentials."""
        raise UserErrorException(
            f"connection {name!r} to {target!r} cannot be stored: a yard stores no credentials for other services",
            hint="packages use your pip configuration, images the sign-in of podman or docker",
        )

    def get_connection(self, name: str) -> Any:
        """Raise UserErrorException: a yard has no connections."""
        raise UserErrorException(f"workspace {self.name!r} has no connection {name!r}", hint="a yard has none")

    def delete_connection(self, name: str) -> None:
        self.get_connection(name)

    def list_connections(self, category: Optional[str] = None, target: Optional[str] = None) -> list[Any]:
        """Always empty: a yard stores no credentials for other services."""
        return []

    def _describe(self, **names: Any) -> None:
        for argument, value in names.items():
            if value is not None:
                setattr(self, f"_{argument}", value)
                no_effect.warn_ignored(self, argument, value, NAMES_ONLY)
