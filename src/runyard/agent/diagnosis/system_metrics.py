"""System metrics of a node during a run, every few seconds: CPU, memory, disk, network, GPUs.

There is no thread and no process for it: the agent, which sleeps in the kernel, wakes up a little more often.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import NamedTuple, Optional

from runyard import clock
from runyard.agent.diagnosis.gpu_metrics import GpuSampler
from runyard.context.journal import Journal
from runyard.spec.folder import RunFolder

FIRST_S = 1.0  # do not disturb the start; most short scripts have ended by then
EVERY_S = 5.0
_SECTOR = 512
_MB = 1e6
_GB = 1024**3
# traffic of these is also counted on a physical device, or never leaves the machine
_VIRTUAL_NETWORKS = ("lo", "veth", "docker", "br-", "virbr", "cni", "flannel", "podman", "tap", "tun")
_VIRTUAL_DISKS = ("loop", "ram", "zram", "dm-", "md", "sr")


class _Counters(NamedTuple):
    at: float
    busy: int
    total: int
    read: int
    written: int
    received: int
    sent: int


class SystemSampler:
    """``poll()`` may be called at any time: it samples when it is due, and never fails."""

    def __init__(
        self,
        folder: RunFolder,
        node: str,
        node_rank: int,
        visible_gpus: Optional[str],
        *,
        first_s: float = FIRST_S,
        every_s: float = EVERY_S,
    ) -> None:
        self._folder, self._node, self._node_rank, self._visible = folder, node, node_rank, visible_gpus
        self._every_s = every_s
        self._due = clock.monotonic() + first_s
        self._before: Optional[_Counters] = None
        self._journal: Optional[Journal] = None
        self._gpus: Optional[GpuSampler] = None

    @property
    def due_in_s(self) -> float:
        return max(self._due - clock.monotonic(), 0.0)

    def poll(self) -> None:
        if clock.monotonic() < self._due:
            return
        self._due += self._every_s
        with suppress(OSError, ValueError, IndexError, KeyError):  # skip metrics that this machine does not provide
            self._sample()

    def _sample(self) -> None:
        now = _counters()
        before, self._before = self._before, now
        if before is None or now.at <= before.at:
            self._gpus = GpuSampler.of_this_machine(self._visible)
            return
        if self._journal is None:
            self._journal = Journal(self._folder.system, rank=self._node_rank)
        for name, value in {**_rates(before, now), **_levels(str(self._folder.root))}.items():
            self._journal.log(f"{self._node}/{name}", value)
        for name, value in self._gpus.sample() if self._gpus is not None else ():
            self._journal.log(f"{self._node}/{name}", value)


def _rates(before: _Counters, now: _Counters) -> dict[str, float]:
    """CPU in percent of all cores; the others in MB per second."""
    ticks = max(now.total - before.total, 1)
    rates = {"cpu": 100.0 * (now.busy - before.busy) / ticks}
    for name, difference in (
        ("disk_read", now.read - before.read),
        ("disk_write", now.written - before.written),
        ("network_in", now.received - before.received),
        ("network_out", now.sent - before.sent),
    ):
        # the sum decreases when an interface or a disk is removed: a rate is never negative
        rates[name] = max(difference, 0) / _MB / (now.at - before.at)
    return rates


def _levels(folder: str) -> dict[str, float]:
    """Memory and the run's disk in percent, and memory in GB."""
    memory = {}
    for line in _read("/proc/meminfo").splitlines():
        name, _, rest = line.partition(b":")
        if name in (b"MemTotal", b"MemAvailable"):
            memory[name] = int(rest.split()[0]) * 1024
    total = memory[b"MemTotal"]
    used = total - memory[b"MemAvailable"]
    disk = os.statvfs(folder)
    return {
        "memory": 100.0 * used / total,
        "memory_gb": used / _GB,
        "disk": 100.0 * (disk.f_blocks - disk.f_bavail) / max(disk.f_blocks, 1),
    }


def _counters() -> _Counters:
    # user, nice, system, idle, iowait, irq, softirq, steal; the first two include guests
    ticks = [int(word) for word in _read("/proc/stat").split(b"\n", 1)[0].split()[1:9]]
    idle = ticks[3] + ticks[4]
    read, written = _disks()
    received, sent = _networks()
    return _Counters(clock.monotonic(), sum(ticks) - idle, sum(ticks), read, written, received, sent)


def _disks() -> tuple[int, int]:
    """Bytes read and written by whole disks, which include those of their partitions."""
    read = written = 0
    for line in _read("/proc/diskstats").splitlines():
        words = line.split()
        name = words[2].decode()
        if not name.startswith(_VIRTUAL_DISKS) and os.access(f"/sys/block/{name}", os.F_OK):
            read += int(words[5]) * _SECTOR
            written += int(words[9]) * _SECTOR
    return read, written


def _networks() -> tuple[int, int]:
    received = sent = 0
    for line in _read("/proc/net/dev").splitlines()[2:]:
        name, _, rest = line.partition(b":")
        if not name.strip().decode().startswith(_VIRTUAL_NETWORKS):
            words = rest.split()
            received += int(words[0])
            sent += int(words[8])
    return received, sent


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
