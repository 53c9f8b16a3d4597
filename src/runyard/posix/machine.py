"""The capacity of this machine, as far as this process may use it."""

from __future__ import annotations

import functools
import math
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

GB = 1024**3
_NVIDIA_SMI_TIMEOUT_S = 5.0
_NVIDIA_SMI_ARGUMENTS = ("--query-gpu=index,name,memory.total", "--format=csv,noheader,nounits")


@dataclass(frozen=True)
class Gpu:
    index: int
    name: str = ""
    memory_gb: float = 0.0


@dataclass(frozen=True)
class Capacity:
    cpus: int
    memory_gb: float
    gpus: tuple[Gpu, ...] = ()


@functools.cache
def machine_capacity() -> Capacity:
    """Determined once per process."""
    return Capacity(cpus=_cpus(), memory_gb=_memory_gb(), gpus=_gpus())


def parse_nvidia_smi(text: str, visible: str | None = None) -> tuple[Gpu, ...]:
    """Parse the GPUs that ``nvidia-smi`` lists; other lines, such as driver warnings, are skipped.

    ``visible`` is the CUDA_VISIBLE_DEVICES of the yard, which may be restricted to some of them.
    """
    gpus = []
    for line in text.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) == 3 and fields[0].isdigit():
            memory_gb = float(fields[2]) / 1024 if fields[2].replace(".", "", 1).isdigit() else 0.0
            gpus.append(Gpu(int(fields[0]), fields[1], round(memory_gb, 1)))
    if visible is None or (visible and not all(part.strip().isdigit() for part in visible.split(","))):
        return tuple(gpus)  # device names instead of indices: left to the driver
    allowed = {int(part) for part in visible.split(",") if part.strip()}
    return tuple(gpu for gpu in gpus if gpu.index in allowed)


def _cpus() -> int:
    usable = len(os.sched_getaffinity(0))
    quota = _cgroup_cpus()
    return max(1, min(usable, math.ceil(quota)) if quota else usable)


def _cgroup_cpus() -> float | None:
    """The CPU quota of a container, which is often below the number of CPUs that it sees."""
    for folder in _cgroup_folders(""):
        fields = _read(folder / "cpu.max").split()
        if len(fields) == 2 and fields[0] != "max":
            return int(fields[0]) / int(fields[1])
    for folder in _cgroup_folders("cpu"):
        quota, period = _read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us")
        if quota and period and int(quota) > 0:
            return int(quota) / int(period)
    return None


def _memory_gb() -> float:
    sizes = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    limits = [_read(folder / "memory.max") for folder in _cgroup_folders("")]
    limits += [_read(folder / "memory.limit_in_bytes") for folder in _cgroup_folders("memory")]
    sizes += [int(limit) for limit in limits if limit.isdigit()]
    return round(min(sizes) / GB, 2)


def _cgroup_folders(controller: str) -> list[Path]:
    """The folders of this process's group and of its parents: a limit on any of them applies."""
    root = Path("/sys/fs/cgroup") / controller
    for line in _read(Path("/proc/self/cgroup")).splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            group = root / path.lstrip("/")
            return [group, *(parent for parent in group.parents if parent.is_relative_to(root))]
    return [root]


def _gpus() -> tuple[Gpu, ...]:
    program = shutil.which("nvidia-smi")
    if program is None:
        return ()
    command = [program, *_NVIDIA_SMI_ARGUMENTS]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=_NVIDIA_SMI_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):  # installed without a GPU, or the driver hangs
        return ()
    return parse_nvidia_smi(result.stdout, os.environ.get("CUDA_VISIBLE_DEVICES"))


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
