"""Where runs run. The machine of the yard is always there, under the name ``local``."""

from __future__ import annotations

import builtins
import sys
from dataclasses import asdict, dataclass
from typing import Any, Optional

from runyard.errors import ComputeTargetException, UserErrorException
from runyard.sdk.azureml import no_effect
from runyard.sdk.compute.amlcompute_status import AmlComputeStatus
from runyard.sdk.core import validation

_COMPUTES = "/api/computes"
_NOT_TAKEN = "machines of your own are not taken away"
_ALWAYS_THERE = "nodes are there for as long as the machines are"
_NO_LOGIN = "nodes are machines that you can log in to already"
_NO_NETWORK = "nodes keep the network that they have"
_NO_IDENTITY = "runs are those of the user whose yard it is"
SPARK = "HDInsight"
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
            raise validation.wrong(
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
            raise validation.wrong(
                "provisioning_configuration",
                provisioning_configuration,
                "what AmlCompute.provisioning_configuration(…) gives",
                error=ComputeTargetException,
            )
        told = [asdict(note) for note in no_effect.about(provisioning_configuration)]
        configuration = {**asdict(provisioning_configuration), **({"no_effect": told} if told else {})}
        body = {"name": name, "kind": AmlCompute.type, "configuration": configuration}
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
            raise validation.wrong(
                "attach_configuration",
                given,
                "what SlurmCompute, SshCompute or RemoteCompute.attach_configuration(…) gives",
                error=ComputeTargetException,
            )
        if given.kind == SPARK:
            raise ComputeTargetException(
                f"{name!r} cannot be attached: runs on Spark and HDInsight are not available here",
                hint="submit the script to another target, with pyspark in its pip_packages",
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

    def detach(self) -> None:
        """Takes its name out of the yard; the machines stay as they are."""
        self.delete()

    def serialize(self) -> dict[str, Any]:
        return dict(self._view)

    @staticmethod
    def deserialize(workspace: Any, object_dict: dict[str, Any]) -> ComputeTarget:
        """From what :meth:`serialize` gave; nothing is asked for."""
        missing = [key for key in ("name", "kind", "configuration") if key not in (object_dict or {})]
        if missing:
            raise ComputeTargetException(f"no compute target can be made of a dict without {', '.join(missing)}")
        return ComputeTarget._of(workspace, {"created_at": None, "status": {}, **object_dict})

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r}, workspace={self.workspace!r})"

    @staticmethod
    def _of(workspace: Any, view: dict[str, Any]) -> ComputeTarget:
        from runyard.sdk.compute import (
            attached,
            legacy,  # which build upon this class
        )

        classes = (LocalTarget, AmlCompute, attached.SlurmCompute, attached.SshCompute, attached.RemoteCompute)
        older = (legacy.BatchAiCompute, legacy.DsvmCompute)
        made_as = view["configuration"].get("made_as") or view["kind"]
        kind = {target.type: target for target in (*classes, *older)}.get(made_as, ComputeTarget)
        # not by calling the class: its constructor asks the yard again
        made = object.__new__(kind)
        made._take(workspace, view)
        return made

    def _take(self, workspace: Any, view: dict[str, Any]) -> None:
        self.workspace, self.name, self._view = workspace, view["name"], view
        self.type = view["configuration"].get("made_as") or view["kind"]
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
    made_as: Optional[str] = None  # by an older name of such a cluster


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
        """What a cluster is to be. What describes a cloud is checked, and then said to have no effect.

        ``vm_size`` is kept as a label: the yard's ``config.toml`` may name a real partition for it.
        """
        least = validation.count("min_nodes", min_nodes, least=0, error=ComputeTargetException)
        if max_nodes is None:
            raise ComputeTargetException("max_nodes is missing", hint="say how large the cluster may become")
        most = validation.count("max_nodes", max_nodes, least=0, error=ComputeTargetException)
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
        idle = _idle_seconds(idle_seconds_before_scaledown)
        made = AmlComputeProvisioning(vm_size, vm_priority, least, most, idle, tags, description)
        public = remote_login_port_public_access
        for argument, value, why in (
            ("vm_priority", None if str(vm_priority).lower() == "dedicated" else vm_priority, _NOT_TAKEN),
            ("min_nodes", least or None, _ALWAYS_THERE),
            ("idle_seconds_before_scaledown", None if idle in (None, 1800) else idle, _ALWAYS_THERE),
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
            no_effect.told(made, argument, value, why, by="AmlCompute.provisioning_configuration")
        return made

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

    def wait_for_completion(  # type: ignore[override]  # the SDK v1 has them in another order here
        self,
        show_output: bool = False,
        min_node_count: Optional[int] = None,
        timeout_in_minutes: Optional[float] = 25,
        is_delete_operation: bool = False,
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
            name: None if value is None else validation.count(name, value, least=0, error=ComputeTargetException)
            for name, value in (("min_nodes", min_nodes), ("max_nodes", max_nodes))
        }
        body["idle_seconds_before_scaledown"] = _idle_seconds(idle_seconds_before_scaledown)
        self._take(self.workspace, self.workspace.connection.patch(f"{_COMPUTES}/{self.name}", body))

    def detach(self) -> None:
        raise ComputeTargetException(f"cluster {self.name!r} cannot be detached", hint="delete() removes it")

    def get(self) -> dict[str, Any]:
        """All that the yard says of it."""
        self.refresh_state()
        return self.serialize()

    def get_active_runs(
        self, type: Optional[str] = None, tags: Any = None, properties: Any = None, status: Optional[str] = None
    ) -> Any:
        """The runs that are on it or wait for it, newest first."""
        from runyard.sdk.run.run import Run

        return Run.list_by_compute(self, type, tags, properties, status)

    def add_identity(self, identity_type: str, identity_id: Any = None) -> None:
        no_effect.told(self, "identity_type", identity_type, _NO_IDENTITY)

    def remove_identity(self, identity_id: Any = None) -> None:
        no_effect.told(self, "identity_id", identity_id, _NO_IDENTITY)

    @staticmethod
    def list_usages(
        workspace: Any, show_all: bool = False, location: Optional[str] = None
    ) -> builtins.list[dict[str, Any]]:
        """What of this machine runs have, and what it has."""
        machine = workspace.connection.get(f"{_COMPUTES}/local")["status"]
        used = {"name": "THIS_MACHINE", "unit": "Count", "limit": machine["cpus"], "currentValue": len(machine["runs"])}
        return [used]

    @staticmethod
    def list_quotas(workspace: Any, location: Optional[str] = None) -> builtins.list[dict[str, Any]]:
        """The machine itself: there is no other limit."""
        sizes = AmlCompute.supported_vmsizes(workspace, location)
        return [{"name": size["name"], "unit": "Count", "limit": size["vCPUs"]} for size in sizes]

    @staticmethod
    def update_quotas(
        workspace: Any, vm_family: Any, limit: Optional[int] = None, location: Optional[str] = None
    ) -> builtins.list[dict[str, Any]]:
        no_effect.told("AmlCompute.update_quotas", "limit", limit, "the machine is the only limit")
        return AmlCompute.list_quotas(workspace, location)


def _check_name(name: Any) -> None:
    if isinstance(name, str) and name.lower() in _RESERVED:
        raise UserErrorException(f"a compute target cannot be named {name!r}", hint="choose another name")


def _idle_seconds(value: Any) -> Optional[int]:
    # published notebooks write the number as text
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    if value is None:
        return None
    return validation.count("idle_seconds_before_scaledown", value, least=0, error=ComputeTargetException)
