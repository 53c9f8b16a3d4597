"""Status of a cluster in the form that scripts for the SDK v1 print."""

from __future__ import annotations

from typing import Any

from runyard.clock import utc_text


class AmlComputeStatus:
    """Node counts and states of a cluster."""

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
        created = self._view["created_at"]
        created = utc_text(created) if isinstance(created, (int, float)) else created
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

    @staticmethod
    def deserialize(object_dict: dict[str, Any]) -> AmlComputeStatus:
        """Return the status that :meth:`serialize` described."""
        scale, counts = object_dict["scaleSettings"], object_dict["nodeStateCounts"]
        busy, idle = counts["runningNodeCount"], counts["idleNodeCount"]
        wait = scale["nodeIdleTimeBeforeScaleDown"]
        configuration = {
            "min_nodes": scale["minNodeCount"],
            "max_nodes": scale["maxNodeCount"],
            "idle_seconds_before_scaledown": int(wait[2:-1]) if wait else None,
            "vm_priority": object_dict["vmPriority"],
            "vm_size": object_dict["vmSize"],
        }
        nodes = [{"run_id": "?"}] * busy + [{"run_id": None}] * idle
        return AmlComputeStatus(
            {"configuration": configuration, "created_at": object_dict["creationTime"], "status": {"nodes": nodes}}
        )

    def __repr__(self) -> str:
        return str(self.serialize())
