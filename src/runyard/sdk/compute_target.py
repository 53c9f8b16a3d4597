"""Where runs run. The machine of the yard is always there, under the name ``local``."""

from __future__ import annotations

import builtins
import sys
from dataclasses import asdict, dataclass
from typing import Any, Optional

from runyard.clock import utc_text
from runyard.errors import ComputeTargetException, UserErrorException
from runyard.sdk import checks

_COMPUTES = "/api/computes"
_RESERVED = ("amlcompute", "local", "containerinstance")


class ComputeTarget:
    """``ComputeTarget(workspace, name)`` is the target of that name, as an object of its own class."""

    type: str = "ComputeTarget"
    workspace: Any
    name: str
    provisioning_state: str
    _view: dict[str, Any]

    def __new__(cls, workspace: Any, name: str) -> ComputeTarget:
        if not isinstance(name, str) or not name or "/" in name:
            raise checks.wrong(
                "the name of a compute target", name, "text such as 'local'", error=ComputeTargetException
            )
        view = workspace.connection.get(f"{_COMPUTES}/{name}")
        found = ComputeTarget._of(workspace, view)
        if not isinstance(found, cls):
            raise ComputeTargetException(
                f"compute target {name!r} is of type {found.type}, not {cls.__name__}",
                hint=f"ComputeTarget(workspace, {name!r}) gives it as what it is",
            )
        return found

    def __init__(self, workspace: Any, name: str) -> None:
        """Everything was set by ``__new__``, from what the yard said."""

    @staticmethod
    def create(workspace: Any, name: str, provisioning_configuration: Any) -> ComputeTarget:
        _check_name(name)
        if not isinstance(provisioning_configuration, AmlComputeProvisioning):
            raise checks.wrong(
                "provisioning_configuration",
                provisioning_configuration,
                "what AmlCompute.provisioning_configuration(…) gives",
                error=ComputeTargetException,
            )
        body = {"name": name, "kind": AmlCompute.type, "configuration": asdict(provisioning_configuration)}
        return ComputeTarget._of(workspace, workspace.connection.post(_COMPUTES, body))

    @staticmethod
    def attach(
        workspace: Any, name: str, attach_configuration: Any = None, *, attach_config: Any = None
    ) -> ComputeTarget:
        """``attach_configuration`` as one of the classes ``SlurmCompute``, ``SshCompute``, ``RemoteCompute`` makes it.

        ``attach_config`` is a spelling that a published notebook uses.
        """
        given = attach_configuration if attach_configuration is not None else attach_config
        if not isinstance(getattr(given, "kind", None), str):
            raise checks.wrong(
                "attach_configuration",
                given,
                "what SlurmCompute, SshCompute or RemoteCompute.attach_configuration(…) gives",
                error=ComputeTargetException,
            )
        _check_name(name)
        body = {"name": name, "kind": given.kind, "configuration": given.configuration}
        return ComputeTarget._of(workspace, workspace.connection.post(_COMPUTES, body))

    @staticmethod
    def list(workspace: Any) -> builtins.list[ComputeTarget]:
        return [ComputeTarget._of(workspace, view) for view in workspace.connection.get(_COMPUTES)]

    def refresh_state(self) -> None:
        self._take(self.workspace, self.workspace.connection.get(f"{_COMPUTES}/{self.name}"))

    def get_status(self) -> Any:
        """What the yard says of it now."""
        self.refresh_state()
        return self._view["status"]

    def wait_for_completion(self, show_output: bool = False, is_delete_operation: bool = False) -> None:
        """Returns at once: a target that the yard names is ready."""

    def delete(self) -> None:
        self.workspace.connection.delete(f"{_COMPUTES}/{self.name}")

    def serialize(self) -> dict[str, Any]:
        return dict(self._view)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r}, workspace={self.workspace!r})"

    @staticmethod
    def _of(workspace: Any, view: dict[str, Any]) -> ComputeTarget:
        from runyard.sdk import clusters  # which build upon this class

        classes = (LocalTarget, AmlCompute, clusters.SlurmCompute, clusters.SshCompute, clusters.RemoteCompute)
        kind = {target.type: target for target in classes}.get(view["kind"], ComputeTarget)
        # not by calling the class: its constructor asks the yard again
        made = object.__new__(kind)
        made._take(workspace, view)
        return made

    def _take(self, workspace: Any, view: dict[str, Any]) -> None:
        self.workspace, self.name, self._view = workspace, view["name"], view
        self.type = view["kind"]
        self.provisioning_state = "Succeeded"


class LocalTarget(ComputeTarget):
    """The machine that the yard is on."""

    type = "Local"


@dataclass(frozen=True)
class AmlComputeProvisioning:
    vm_size: str
    vm_priority: str
    min_nodes: int
    max_nodes: int
    idle_seconds_before_scaledown: Optional[int]
    tags: Optional[dict[str, str]] = None
    description: Optional[str] = None


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
        """What a cluster is to be. Networks, users and identities of the cloud are checked and then have no meaning."""
        least = checks.count("min_nodes", min_nodes, least=0, error=ComputeTargetException)
        if max_nodes is None:
            raise ComputeTargetException("max_nodes is missing", hint="say how large the cluster may become")
        most = checks.count("max_nodes", max_nodes, least=0, error=ComputeTargetException)
        if most < least:
            raise ComputeTargetException(f"max_nodes is {most}, below min_nodes, which is {least}")
        network = (vnet_resourcegroup_name, vnet_name, subnet_name)
        if any(network) and not all(network):
            raise ComputeTargetException(
                "a virtual network needs vnet_resourcegroup_name, vnet_name and subnet_name",
                hint="give all three, or none",
            )
        if bool(admin_username) != bool(admin_user_password or admin_user_ssh_key):
            raise ComputeTargetException(
                "an admin user needs admin_username, and admin_user_password or admin_user_ssh_key"
            )
        return AmlComputeProvisioning(
            vm_size, vm_priority, least, most, _idle_seconds(idle_seconds_before_scaledown), tags, description
        )

    @staticmethod
    def supported_vmsizes(workspace: Any, location: Optional[str] = None) -> builtins.list[dict[str, Any]]:
        """One size: a node of a cluster on this machine shares it with the others."""
        machine = workspace.connection.get(f"{_COMPUTES}/local")["status"]
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
        """As the SDK's first releases had it; :meth:`get_status` in later ones."""
        return self.get_status()

    def get_status(self) -> AmlComputeStatus:
        self.refresh_state()
        return AmlComputeStatus(self._view)

    def wait_for_completion(
        self,
        show_output: bool = False,
        is_delete_operation: bool = False,
        min_node_count: Optional[int] = None,
        timeout_in_minutes: Optional[float] = 25,
    ) -> None:
        """Returns at once: the nodes are there as soon as the cluster is, since this machine is."""
        if show_output:
            sys.stdout.write(f"{self.name}: Succeeded, {self.get_status().current_node_count} nodes\n")

    def list_nodes(self) -> builtins.list[dict[str, Any]]:
        """Every node: what it does, and for which run."""
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
        """Changes what is given; runs that are there keep their nodes."""
        body = {
            name: None if value is None else checks.count(name, value, least=0, error=ComputeTargetException)
            for name, value in (("min_nodes", min_nodes), ("max_nodes", max_nodes))
        }
        body["idle_seconds_before_scaledown"] = _idle_seconds(idle_seconds_before_scaledown)
        self._take(self.workspace, self.workspace.connection.patch(f"{_COMPUTES}/{self.name}", body))

    def detach(self) -> None:
        raise ComputeTargetException(f"cluster {self.name!r} cannot be detached", hint="delete() removes it")


class AmlComputeStatus:
    """How a cluster stands, in the shape that scripts for the SDK v1 print."""

    def __init__(self, view: dict[str, Any]) -> None:
        self._view = view
        nodes = view["status"]["nodes"]
        self.current_node_count = len(nodes)
        self.target_node_count = len(nodes)
        self.running_node_count = sum(1 for node in nodes if node["run_id"])
        self.idle_node_count = len(nodes) - self.running_node_count
        self.provisioning_state = "Succeeded"
        self.allocation_state = "Steady"
        self.errors = None

    def serialize(self) -> dict[str, Any]:
        configuration = self._view["configuration"]
        created = utc_text(self._view["created_at"])
        idle = configuration["idle_seconds_before_scaledown"]
        return {
            "currentNodeCount": self.current_node_count,
            "targetNodeCount": self.target_node_count,
            "nodeStateCounts": {
                "preparingNodeCount": 0,
                "runningNodeCount": self.running_node_count,
                "idleNodeCount": self.idle_node_count,
                "unusableNodeCount": 0,
                "leavingNodeCount": 0,
                "preemptedNodeCount": 0,
            },
            "allocationState": self.allocation_state,
            "allocationStateTransitionTime": created,
            "errors": self.errors,
            "creationTime": created,
            "modifiedTime": created,
            "provisioningState": self.provisioning_state,
            "provisioningStateTransitionTime": None,
            "scaleSettings": {
                "minNodeCount": configuration["min_nodes"],
                "maxNodeCount": configuration["max_nodes"],
                "nodeIdleTimeBeforeScaleDown": None if idle is None else f"PT{idle}S",
            },
            "vmPriority": configuration["vm_priority"].capitalize(),
            "vmSize": configuration["vm_size"],
        }

    def __repr__(self) -> str:
        return str(self.serialize())


def _check_name(name: Any) -> None:
    if isinstance(name, str) and name.lower() in _RESERVED:
        raise UserErrorException(f"a compute target cannot be named {name!r}", hint="choose another name")


def _idle_seconds(value: Any) -> Optional[int]:
    # published notebooks write the number as text
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    if value is None:
        return None
    return checks.count("idle_seconds_before_scaledown", value, least=0, error=ComputeTargetException)
