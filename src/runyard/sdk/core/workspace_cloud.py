"""What a workspace of the SDK v1 had of its cloud: each member answers for a yard, or says why it cannot.

A yard has no keys, networks, vaults or bills: it is a folder of one user, and whoever owns the folder may use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from runyard.errors import UserErrorException
from runyard.sdk.azureml import no_effect
from runyard.spec.folder import HomeFolder

if TYPE_CHECKING:
    from pathlib import Path

    from runyard.client.connection import Connection
    from runyard.sdk.compute.target import AmlComputeProvisioning, ComputeTarget
    from runyard.sdk.run.run import Run

OPEN_TO_ITS_OWNER = "a yard asks nobody to sign in: it belongs to the user whose folder it is"
NAMES_ONLY = "a yard has one name for itself; this is kept in the object, and selects nothing"
NO_NETWORKS = "a yard listens on a socket in its owner's folder; no network leads to it"
NO_ACCOUNTS = "a yard keeps everything in its home folder"


class _Cluster:
    """Made when it is read: every training script imports workspaces, and few of them make clusters."""

    def __init__(self, vm_size: str) -> None:
        self._vm_size = vm_size

    def __get__(self, owner: Any, kind: Any) -> AmlComputeProvisioning:
        from runyard.sdk.compute.target import AmlCompute

        return AmlCompute.provisioning_configuration(vm_size=self._vm_size, min_nodes=0, max_nodes=2)


class WorkspaceOfV1:
    DEFAULT_CPU_CLUSTER_NAME = "cpu-cluster"
    DEFAULT_GPU_CLUSTER_NAME = "gpu-cluster"
    DEFAULT_CPU_CLUSTER_CONFIGURATION = _Cluster("STANDARD_DS2_V2")
    DEFAULT_GPU_CLUSTER_CONFIGURATION = _Cluster("STANDARD_NC6")

    if TYPE_CHECKING:
        name: str
        subscription_id: str
        resource_group: str
        location: str
        connection: Connection

        @property
        def home(self) -> Path: ...

    _sku = "basic"
    _tags: Optional[dict[str, str]] = None
    _friendly_name: Optional[str] = None
    _description: Optional[str] = None

    # what it is

    @property
    def sku(self) -> str:
        return self._sku

    @property
    def tags(self) -> dict[str, str]:
        return dict(self._tags or {})

    @property
    def discovery_url(self) -> str:
        """Where the yard listens: a socket in its home folder."""
        return HomeFolder(self.home).socket.as_uri()

    @property
    def service_context(self) -> Connection:
        """What speaks to the yard."""
        return self.connection

    @property
    def private_endpoints(self) -> dict[str, Any]:
        """None: no network leads to a yard."""
        return {}

    @property
    def linked_services(self) -> list[Any]:
        """None: a yard is linked to nothing."""
        return []

    def get_run(self, run_id: str) -> Run:
        from runyard.sdk.run.run import Run

        return Run.get(self, run_id)

    def get_default_compute_target(self, type: str) -> ComputeTarget:
        """The cluster ``cpu-cluster`` or ``gpu-cluster``, where there is one of that name; else the yard's machine."""
        from runyard.sdk.compute.target import ComputeTarget

        names = {"CPU": self.DEFAULT_CPU_CLUSTER_NAME, "GPU": self.DEFAULT_GPU_CLUSTER_NAME}
        if not isinstance(type, str) or type.upper() not in names:
            raise UserErrorException(f"the type of a default target is 'CPU' or 'GPU', not {type!r}")
        known = {target.name: target for target in ComputeTarget.list(self)}
        return known.get(names[type.upper()], known["local"])

    def diagnose_workspace(self, diagnose_parameters: Any) -> dict[str, Any]:
        """How the yard is; `runyard doctor` looks at the whole machine."""
        no_effect.told(
            self, "diagnose_parameters", diagnose_parameters or None, "they name parts of a cloud to be looked at"
        )
        health = self.connection.get("/api/health")
        return {
            "value": {"userDefinedRouteResults": [], "networkSecurityRuleResults": [], "otherResults": []},
            **health,
        }

    # what changes nothing

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
        self._describe(friendly_name=friendly_name, description=description, tags=tags)
        for argument, value, why in (
            ("image_build_compute", image_build_compute, "environments are built by the yard itself"),
            ("service_managed_resources_settings", service_managed_resources_settings, NO_ACCOUNTS),
            ("primary_user_assigned_identity", primary_user_assigned_identity, OPEN_TO_ITS_OWNER),
            ("allow_public_access_when_behind_vnet", allow_public_access_when_behind_vnet, NO_NETWORKS),
            ("v1_legacy_mode", v1_legacy_mode, NO_NETWORKS),
        ):
            no_effect.told(self, argument, value, why)
        return {"name": self.name, "friendlyName": self._friendly_name, "description": self._description}

    def update_dependencies(self, container_registry: Optional[str] = None, force: bool = False) -> None:
        no_effect.told(
            self,
            "container_registry",
            container_registry,
            "images are pulled by podman or docker, as they are signed in",
        )

    def sync_keys(self, no_wait: bool = False) -> None:
        no_effect.nothing_done("Workspace.sync_keys()", OPEN_TO_ITS_OWNER)

    def add_private_endpoint(
        self,
        private_endpoint_config: Any,
        private_endpoint_auto_approval: bool = True,
        location: Optional[str] = None,
        show_output: bool = True,
        tags: Optional[dict[str, str]] = None,
    ) -> None:
        no_effect.told(self, "private_endpoint_config", private_endpoint_config, NO_NETWORKS)

    def delete_private_endpoint_connection(self, private_endpoint_connection_name: str) -> None:
        no_effect.told(self, "private_endpoint_connection_name", private_endpoint_connection_name, NO_NETWORKS)

    @staticmethod
    def setup() -> None:
        no_effect.nothing_done("Workspace.setup()", "a yard is started by the first call that needs it")

    # what is refused

    def delete(self, delete_dependent_resources: bool = False, no_wait: bool = False) -> None:
        raise UserErrorException(
            f"workspace {self.name!r} is a yard with all its runs, and no script deletes it",
            hint=f"runyard yard stop, and then remove the folder {self.home} yourself",
        )

    def list_keys(self) -> dict[str, Any]:
        raise UserErrorException(f"workspace {self.name!r} has no keys: {OPEN_TO_ITS_OWNER}")

    def get_default_keyvault(self) -> Any:
        raise UserErrorException(
            f"workspace {self.name!r} has no vault: a yard keeps no secrets of yours",
            hint="give them to a run with environment_variables={…}; run.get_secret(name) reads them there",
        )

    def set_connection(self, name: str, category: str, target: str, authType: str, value: str) -> Any:  # noqa: N803
        raise UserErrorException(
            f"connection {name!r} to {target!r} cannot be kept: a yard keeps no credentials for other services",
            hint="packages come by your own pip configuration, images as podman or docker are signed in",
        )

    def get_connection(self, name: str) -> Any:
        raise UserErrorException(f"workspace {self.name!r} has no connection {name!r}", hint="a yard keeps none")

    def delete_connection(self, name: str) -> None:
        self.get_connection(name)

    def list_connections(self, category: Optional[str] = None, target: Optional[str] = None) -> list[Any]:
        """None: a yard keeps no credentials for other services."""
        return []

    def _describe(self, **said: Any) -> None:
        for argument, value in said.items():
            if value is not None:
                setattr(self, f"_{argument}", value)
                no_effect.told(self, argument, value, NAMES_ONLY)
