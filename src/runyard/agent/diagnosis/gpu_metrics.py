"""Metrics of NVIDIA GPUs from the driver's NVML library, which is much faster than starting `nvidia-smi`."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any, Optional

_LIBRARY = "libnvidia-ml.so.1"
_GB = 1024**3
_CORE_TEMPERATURE = 0


class _Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class GpuSampler:
    """Reads the GPUs in ``visible``, the run's CUDA_VISIBLE_DEVICES; None means all, empty means none."""

    def __init__(self, library: Any, visible: Optional[str] = None) -> None:
        self._library = library
        self._handles: dict[int, ctypes.c_void_p] = {}
        if library.nvmlInit_v2() != 0:
            return
        count = ctypes.c_uint()
        library.nvmlDeviceGetCount_v2(ctypes.byref(count))
        for index in range(count.value):
            handle = ctypes.c_void_p()
            if _is_visible(index, visible) and library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) == 0:
                self._handles[index] = handle

    @classmethod
    def of_this_machine(cls, visible: Optional[str]) -> Optional[GpuSampler]:
        """None if this machine has no NVIDIA driver."""
        try:
            return cls(ctypes.CDLL(_LIBRARY), visible)
        except (OSError, AttributeError):
            return None

    def sample(self) -> Iterator[tuple[str, float]]:
        """Yield (name, value): utilization and memory in percent, memory in GB, power in W, temperature in °C.

        Values that a card does not report are omitted.
        """
        library = self._library
        for index, handle in self._handles.items():
            utilization, memory, number = _Utilization(), _Memory(), ctypes.c_uint()
            if library.nvmlDeviceGetUtilizationRates(handle, ctypes.byref(utilization)) == 0:
                yield f"gpu{index}", float(utilization.gpu)
            if library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)) == 0 and memory.total:
                yield f"gpu{index}_memory", 100.0 * memory.used / memory.total
                yield f"gpu{index}_memory_gb", memory.used / _GB
            if library.nvmlDeviceGetPowerUsage(handle, ctypes.byref(number)) == 0:
                yield f"gpu{index}_power", number.value / 1000.0
            if library.nvmlDeviceGetTemperature(handle, _CORE_TEMPERATURE, ctypes.byref(number)) == 0:
                yield f"gpu{index}_temperature", float(number.value)


def _is_visible(index: int, visible: Optional[str]) -> bool:
    if visible is None:
        return True
    names = [part.strip() for part in visible.split(",") if part.strip()]
    # device names instead of numbers: only the driver can resolve them, so all GPUs are read
    return str(index) in names or any(not name.isdigit() for name in names)
