"""Resource requirements that can be recorded with a model."""

from __future__ import annotations

from typing import Any, Optional

from runyard.errors import UserErrorException


class ResourceConfiguration:
    """Processors, memory and GPUs that a model needs when it is deployed."""

    def __init__(
        self, cpu: Optional[float] = None, memory_in_gb: Optional[float] = None, gpu: Optional[int] = None
    ) -> None:
        for name, value in (("cpu", cpu), ("memory_in_gb", memory_in_gb), ("gpu", gpu)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0):
                raise UserErrorException(f"{name} must be a number of at least 0, got {value!r}")
        self.cpu, self.memory_in_gb, self.gpu = cpu, memory_in_gb, gpu

    def serialize(self) -> dict[str, Any]:
        return {"cpu": self.cpu, "memoryInGB": self.memory_in_gb, "gpu": self.gpu}

    @staticmethod
    def deserialize(payload_obj: Optional[dict[str, Any]]) -> Optional[ResourceConfiguration]:
        if not payload_obj:
            return None
        return ResourceConfiguration(payload_obj.get("cpu"), payload_obj.get("memoryInGB"), payload_obj.get("gpu"))
