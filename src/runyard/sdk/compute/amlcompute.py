"""Clusters whose nodes the yard simulates on its machine or maps to a Slurm partition."""

from __future__ import annotations

import builtins
import sys
from dataclasses import dataclass
from typing import Any, Optional

from runyard.errors import ComputeTargetException
from runyard.sdk.azureml import no_effect
from runyard.sdk.compute.amlcompute_status import AmlComputeStatus
from runyard.sdk.compute.target import COMPUTES, ComputeTarget
from runyard.sdk.core import validation

_NOT_PREEMPTED = "your own machines are not preempted"
_ALWAYS_AVAILABLE = "nodes exist for as long as the machines do"
_NO_LOGIN = "nodes are machines that you can log in to already"
_NO_NETWORK = "nodes keep the network that they have"
_NO_IDENTITY = "runs belong to the user who runs the yard"


@dataclass
class AmlComputeProvisioning:
    """Settings of a cluster; created by ``provisioning_configuration`` of one of the classes below."""

    vm_size: str
    vm_priority: str
    min_nodes: int
    max_nodes: int
    idle_seconds_before_scaledown: Optional[int]
    tags: Optional[dict[str, str]] = None
    description: Optional[str] = None
    made_as: Optional[str] = None  # type of the class that created it, if not AmlCompute


class AmlCompute(ComputeTarget):
    """A cluster of nodes."""

    type = "AmlCompute"

    @staticmethod
    def provisioning_configuration(
        vm_size: str = "",
        vm_priority: str = "dedicated",
        min_nodes: int = 0,
        max_nodes: Optional[int] = None,
        idle_seconds_before_scaledown: Any = 1800,
        admin_username: Optional[str] = None,
        admin_user_password: Optional[str] = None,
        admin_user_ssh_key: Optional[str] = None,
        vnet_resourcegroup_name: Optional[str] = None,
        vnet_name: Optional[str] = None,
        subnet_name: Optional[str] = None,
        tags: Optional[dict[str, str]] = None,
        description: Optional[str] = None,
        remote_login_port_public_access: str = "NotSpecified",
        identity_type: Optional[str] = None,
        identity_id: Optional[builtins.list[str]] = None,
        location: Optional[str] = None,
        enable_node_public_ip: bool = True,
    ) -> AmlComputeProvisioning:
        """Return the settings for ``ComputeTarget.create``.

        Settings that describe a cloud are checked, and reported to have no effect.

        Args:
            vm_size: A label; the yard's ``config.toml`` can map it to a Slurm partition.
            max_nodes: Number of nodes of the cluster; required.
            min_nodes: At most ``max_nodes``; has no effect.
            tags: Labels of the cluster.
            description: Free text.

        Raises:
            ComputeTargetException: Settings are missing or contradict each other.
        """
        min_count = validation.count("min_nodes", min_nodes, minimum=0, error=ComputeTargetException)
        if max_nodes is None:
            raise ComputeTargetException("max_nodes is missing", hint="pass the number of nodes of the cluster")
        max_count = validation.count("max_nodes", max_nodes, minimum=0, error=ComputeTargetException)
        if max_count < min_count:
            raise ComputeTargetException(f"max_nodes ({max_count}) is below min_nodes ({min_count})")
        network = (vnet_resourcegroup_name, vnet_name, subnet_name)
        if any(network) and not all(network):
            raise ComputeTargetException(
                "a virtual network needs vnet_resourcegroup_name, vnet_name and subnet_name",
                hint="pass all three, or none",
            )
        if bool(admin_username) != bool(admin_user_password or admin_user_ssh_key):
            raise ComputeTargetException(
                "an admin user needs admin_username and either admin_user_password or admin_user_ssh_key"
            )
        idle = _idle_seconds(idle_seconds_before_scaledown)
        provisioning = AmlComputeProvisioning(vm_size, vm_priority, min_count, max_count, idle, tags, description)
        public = remote_login_port_public_access
        for argument, value, why in (
            ("vm_priority", None if str(vm_priority).lower() == "dedicated" else vm_priority, _NOT_PREEMPTED),
            ("min_nodes", min_count or None, _ALWAYS_AVAILABLE),
            ("idle_seconds_before_scaledown", None if idle in (None, 1800) else idle, _ALWAYS_AVAILABLE),
            ("admin_username", admin_username, _NO_LOGIN),
            ("vnet_name", vnet_name, _NO_NETWORK),
            ("subnet_name", subnet_name, _NO_NETWORK),
            ("vnet_resourcegroup_name", vnet_resourcegroup_name, _NO_NETWORK),
            ("remote_login_port_public_access", None if public == "NotSpecified" else public, _NO_LOGIN),
            ("identity_type", identity_type, _NO_IDENTITY),
            ("identity_id", identity_id, _NO_IDENTITY),
            ("location", location, "its nodes are where your machines are"),
            ("enable_node_public_ip", None if enable_node_public_ip else False, _NO_NETWORK),
        ):
            no_effect.warn_ignored(provisioning, argument, value, why, caller="AmlCompute.provisioning_configuration")
        return provisioning

    @staticmethod
    def supported_vmsizes(workspace: Any, location: Optional[str] = None) -> builtins.list[dict[str, Any]]:
        """Return the one size that exists: the yard's machine, which all nodes of a cluster share."""
        machine = workspace.connection.get(f"{COMPUTES}/local")["status"]
        return [
            {
                "name": "THIS_MACHINE",
                "vCPUs": machine["cpus"],
                "gpus": len(machine["gpus"]),
                "memoryGB": machine["memory_gb"],
                "maxResourceVolumeMB": None,
            }
        ]

    @property
    def status(self) -> AmlComputeStatus:
        """Same as :meth:`get_status`; the name of the SDK's first releases."""
        return self.get_status()

    def get_status(self) -> AmlComputeStatus:
        """Return the current node counts and states."""
        self.refresh_state()
        return AmlComputeStatus(self._view)

    def wait_for_completion(  # type: ignore[override]  # the SDK v1 orders the parameters differently here
        self,
        show_output: bool = False,
        min_node_count: Optional[int] = None,
        timeout_in_minutes: Optional[float] = 25,
        is_delete_operation: bool = False,
    ) -> None:
        """Return immediately: a new cluster has all its nodes."""
        if show_output:
            sys.stdout.write(f"{self.name}: Succeeded, {self.get_status().current_node_count} nodes\n")

    def list_nodes(self) -> builtins.list[dict[str, Any]]:
        """Return the id, the state and the current run of every node."""
        self.refresh_state()
        return [
            {
                "nodeId": node["name"],
                "privateIpAddress": "127.0.0.1",
                "publicIpAddress": None,
                "port": None,
                "nodeState": "running" if node["run_id"] else "idle",
                "runId": node["run_id"],
            }
            for node in self._view["status"]["nodes"]
        ]

    def update(
        self,
        min_nodes: Optional[int] = None,
        max_nodes: Optional[int] = None,
        idle_seconds_before_scaledown: Any = None,
    ) -> None:
        """Change the given settings; runs keep the nodes that they use."""
        body = {
            name: None if value is None else validation.count(name, value, minimum=0, error=ComputeTargetException)
            for name, value in (("min_nodes", min_nodes), ("max_nodes", max_nodes))
        }
        body["idle_seconds_before_scaledown"] = _idle_seconds(idle_seconds_before_scaledown)
        self._update(self.workspace, self.workspace.connection.patch(f"{COMPUTES}/{self.name}", body))

    def detach(self) -> None:
        raise ComputeTargetException(f"cluster {self.name!r} cannot be detached", hint="delete() removes it")

    def get(self) -> dict[str, Any]:
        """Return all that the yard stores about the cluster."""
        self.refresh_state()
        return self.serialize()

    def get_active_runs(
        self, type: Optional[str] = None, tags: Any = None, properties: Any = None, status: Optional[str] = None
    ) -> Any:
        """Return the runs that use the cluster or wait for it, newest first."""
        from runyard.sdk.run.run import Run

        return Run.list_by_compute(self, type, tags, properties, status)

    def add_identity(self, identity_type: str, identity_id: Any = None) -> None:
        no_effect.warn_ignored(self, "identity_type", identity_type, _NO_IDENTITY)

    def remove_identity(self, identity_id: Any = None) -> None:
        no_effect.warn_ignored(self, "identity_id", identity_id, _NO_IDENTITY)

    @staticmethod
    def list_usages(
        workspace: Any, show_all: bool = False, location: Optional[str] = None
    ) -> builtins.list[dict[str, Any]]:
        """Return the number of runs on the yard's machine and of its processors."""
        machine = workspace.connection.get(f"{COMPUTES}/local")["status"]
        used = {"name": "THIS_MACHINE", "unit": "Count", "limit": machine["cpus"], "currentValue": len(machine["runs"])}
        return [used]

    @staticmethod
    def list_quotas(workspace: Any, location: Optional[str] = None) -> builtins.list[dict[str, Any]]:
        """Return the processors of the yard's machine: there is no other limit."""
        sizes = AmlCompute.supported_vmsizes(workspace, location)
        return [{"name": size["name"], "unit": "Count", "limit": size["vCPUs"]} for size in sizes]

    @staticmethod
    def update_quotas(
        workspace: Any, vm_family: Any, limit: Optional[int] = None, location: Optional[str] = None
    ) -> builtins.list[dict[str, Any]]:
        no_effect.warn_ignored("AmlCompute.update_quotas", "limit", limit, "the machine is the only limit")
        return AmlCompute.list_quotas(workspace, location)


class BatchAiCompute(AmlCompute):
    """The name of AmlCompute in the SDK's first releases."""

    type = "BatchAI"

    @staticmethod
    def provisioning_configuration(  # type: ignore[override]
        vm_size: str = "",
        vm_priority: str = "",
        autoscale_enabled: Optional[bool] = None,
        cluster_min_nodes: Optional[int] = None,
        cluster_max_nodes: Optional[int] = None,
        location: Optional[str] = None,
        tags: Optional[dict[str, str]] = None,
        description: Optional[str] = None,
    ) -> AmlComputeProvisioning:
        """Return the settings for ``ComputeTarget.create``; without node counts, of a cluster of one node."""
        caller = "BatchAiCompute.provisioning_configuration"
        no_effect.warn_ignored(caller, "autoscale_enabled", autoscale_enabled, _ALWAYS_AVAILABLE)
        min_nodes = cluster_min_nodes or 0
        provisioning = AmlCompute.provisioning_configuration(
            vm_size=vm_size,
            vm_priority=vm_priority or "dedicated",
            min_nodes=min_nodes,
            max_nodes=max(1, min_nodes) if cluster_max_nodes is None else cluster_max_nodes,
            location=location,
            tags=tags,
            description=description,
        )
        provisioning.made_as = BatchAiCompute.type
        return provisioning

    @staticmethod
    def attach(workspace: Any, name: str, resource_id: Any) -> ComputeTarget:  # type: ignore[override]
        raise ComputeTargetException(
            f"{name!r} cannot be attached: {resource_id!r} is a cluster of a service that no longer exists",
            hint="ComputeTarget.create(ws, name, BatchAiCompute.provisioning_configuration(…)) creates a cluster here",
        )

    def wait_for_completion(  # type: ignore[override]
        self,
        show_output: bool = False,
        min_node_count: Optional[int] = None,
        timeout_in_minutes: Optional[float] = 20,
        is_delete_operation: bool = False,
    ) -> None:
        super().wait_for_completion(show_output, min_node_count, timeout_in_minutes, is_delete_operation)


class DsvmCompute(ComputeTarget):
    """A data science VM: one node on the yard's machine."""

    type = "VirtualMachine"

    @staticmethod
    def provisioning_configuration(
        vm_size: Optional[str] = None, ssh_port: Any = None, location: Optional[str] = None
    ) -> AmlComputeProvisioning:
        provisioning = AmlCompute.provisioning_configuration(vm_size=vm_size or "", max_nodes=1, location=location)
        provisioning.made_as = DsvmCompute.type
        caller = "DsvmCompute.provisioning_configuration"
        no_effect.warn_ignored(provisioning, "ssh_port", ssh_port, "the node is the yard's machine", caller=caller)
        return provisioning

    def get_credentials(self) -> dict[str, Optional[str]]:
        """Return empty credentials: the node is the yard's machine."""
        return {"username": None, "password": None, "publicKey": None, "privateKey": None}


def _idle_seconds(value: Any) -> Optional[int]:
    # published notebooks write the number as text
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    if value is None:
        return None
    return validation.count("idle_seconds_before_scaledown", value, minimum=0, error=ComputeTargetException)
