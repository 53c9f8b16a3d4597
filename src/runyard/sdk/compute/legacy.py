"""Targets that the SDK v1 had and a yard plays: clusters by their first name, one machine to try things on, Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Optional

from runyard.errors import ComputeTargetException
from runyard.sdk.azureml import no_effect
from runyard.sdk.compute.attached import AttachConfiguration
from runyard.sdk.compute.target import SPARK, AmlCompute, AmlComputeProvisioning, ComputeTarget


class BatchAiCompute(AmlCompute):
    """What an AmlCompute was called in the SDK's first releases."""

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
        """Without counts it is a cluster of one node."""
        no_effect.told(
            "BatchAiCompute.provisioning_configuration",
            "autoscale_enabled",
            autoscale_enabled,
            "nodes are there for as long as the machines are",
        )
        least = cluster_min_nodes or 0
        made = AmlCompute.provisioning_configuration(
            vm_size=vm_size,
            vm_priority=vm_priority or "dedicated",
            min_nodes=least,
            max_nodes=max(1, least) if cluster_max_nodes is None else cluster_max_nodes,
            location=location,
            tags=tags,
            description=description,
        )
        return _made_as(BatchAiCompute.type, made)

    @staticmethod
    def attach(workspace: Any, name: str, resource_id: Any) -> ComputeTarget:  # type: ignore[override]
        raise ComputeTargetException(
            f"{name!r} cannot be attached: {resource_id!r} is a cluster of a service that is gone",
            hint="ComputeTarget.create(ws, name, BatchAiCompute.provisioning_configuration(…)) makes one here",
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
    """A machine to try things on: one node, played on the yard's machine."""

    type = "VirtualMachine"

    @staticmethod
    def provisioning_configuration(
        vm_size: Optional[str] = None, ssh_port: Any = None, location: Optional[str] = None
    ) -> AmlComputeProvisioning:
        made = _made_as(
            DsvmCompute.type,
            AmlCompute.provisioning_configuration(vm_size=vm_size or "", max_nodes=1, location=location),
        )
        called = "DsvmCompute.provisioning_configuration"
        no_effect.told(made, "ssh_port", ssh_port, "the node is the machine that the yard is on", by=called)
        return made

    def get_credentials(self) -> dict[str, Optional[str]]:
        """Nobody's: the node is the machine that the yard is on."""
        return {"username": None, "password": None, "publicKey": None, "privateKey": None}


class HDInsightCompute(ComputeTarget):
    """A Spark cluster. None can be attached, so none is ever found: both say so as a ComputeTargetException."""

    type = SPARK

    @staticmethod
    def attach_configuration(
        username: str,
        subscription_id: Optional[str] = None,
        resource_group: Optional[str] = None,
        cluster_name: Optional[str] = None,
        resource_id: Optional[str] = None,
        address: Optional[str] = None,
        ssh_port: Any = "22",
        password: str = "",
        private_key_file: Any = "",
        private_key_passphrase: str = "",
    ) -> AttachConfiguration:
        """It is refused when it is attached, where scripts expect an error."""
        return AttachConfiguration(SPARK, {"username": username, "address": address or cluster_name or resource_id})

    @staticmethod
    def attach(  # type: ignore[override]  # the SDK v1 has both, under one name
        workspace: Any,
        name: str,
        username: str,
        address: str,
        ssh_port: Any = "22",
        password: str = "",
        private_key_file: Any = "",
        private_key_passphrase: str = "",
    ) -> ComputeTarget:
        return ComputeTarget.attach(workspace, name, HDInsightCompute.attach_configuration(username, address=address))

    def get_credentials(self) -> dict[str, Optional[str]]:
        raise ComputeTargetException("there are no Spark clusters here, so none has credentials")


def _made_as(kind: str, made: AmlComputeProvisioning) -> AmlComputeProvisioning:
    renamed = replace(made, made_as=kind)
    for note in no_effect.about(made):
        renamed.__dict__.setdefault(no_effect.NOTES, {})[note.argument] = note
    return renamed
