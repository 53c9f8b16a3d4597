"""System metrics that an agent measures."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import pytest

from runyard.agent.diagnosis.gpu_metrics import GpuSampler
from runyard.agent.diagnosis.system_metrics import SystemSampler
from runyard.spec.folder import RunFolder
from runyard.store.open_store import open_database
from runyard.tracking.ingest import ingest
from runyard.tracking.series_index import list_series
from support import eventually


class Driver:
    """The used part of NVML, with two GPUs of which the second does not report its power."""

    def nvmlInit_v2(self) -> int:  # noqa: N802
        return 0

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:  # noqa: N802
        count._obj.value = 2
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index: int, handle: Any) -> int:  # noqa: N802
        handle._obj.value = index + 1
        return 0

    def nvmlDeviceGetUtilizationRates(self, handle: ctypes.c_void_p, utilization: Any) -> int:  # noqa: N802
        utilization._obj.gpu = 40 + (handle.value or 0)
        return 0

    def nvmlDeviceGetMemoryInfo(self, handle: Any, memory: Any) -> int:  # noqa: N802
        memory._obj.total, memory._obj.used = 8 * 1024**3, 2 * 1024**3
        return 0

    def nvmlDeviceGetPowerUsage(self, handle: ctypes.c_void_p, number: Any) -> int:  # noqa: N802
        number._obj.value = 150_500
        return 0 if handle.value == 1 else 3

    def nvmlDeviceGetTemperature(self, handle: Any, sensor: int, number: Any) -> int:  # noqa: N802
        number._obj.value = 61
        return 0


def test_cpu_memory_disk_and_network_are_measured_and_stored(tmp_path: Path) -> None:
    sampler = SystemSampler(RunFolder(tmp_path), "node-3", 3, None, first_s=0.0, every_s=0.02)

    def has_measured() -> bool:
        sampler.poll()
        return any((tmp_path / "system").glob("*.seg"))

    eventually(has_measured, "a measurement")
    database = open_database(tmp_path / "yard.db")
    ingest(database, "r/system", RunFolder(tmp_path).system)
    last = {series.name: series.last for series in list_series(database, "r/system")}
    database.close()
    names = ("cpu", "memory", "memory_gb", "disk", "disk_read", "disk_write", "network_in", "network_out")
    assert set(last) >= {f"node-3/{name}" for name in names}
    assert 0 <= last["node-3/cpu"] <= 100
    assert 0 < last["node-3/memory"] <= 100
    assert 0 < last["node-3/disk"] <= 100
    assert min(last.values()) >= 0


def test_nothing_is_measured_before_it_is_due(tmp_path: Path) -> None:
    sampler = SystemSampler(RunFolder(tmp_path), "local", 0, None)
    sampler.poll()
    assert 0 < sampler.due_in_s <= 1
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_does_not_stop_an_agent(tmp_path: Path) -> None:
    (tmp_path / "system").write_text("not a folder")
    sampler = SystemSampler(RunFolder(tmp_path), "local", 0, None, first_s=0.0, every_s=0.0)
    for _ in range(5):
        sampler.poll()
    assert (tmp_path / "system").read_text() == "not a folder"
    assert [path.name for path in tmp_path.iterdir()] == ["system"]


def test_gpu_metrics_omit_unsupported_values() -> None:
    metrics = dict(GpuSampler(Driver()).sample())
    assert metrics["gpu0"] == 41.0
    assert metrics["gpu0_memory"] == 25.0
    assert metrics["gpu1_memory_gb"] == 2.0
    assert metrics["gpu0_power"] == 150.5
    assert metrics["gpu1_temperature"] == 61.0
    assert "gpu1_power" not in metrics


@pytest.mark.parametrize(
    ("visible", "expected"), [(None, {"gpu0", "gpu1"}), ("1", {"gpu1"}), ("", set()), ("GPU-3f2a", {"gpu0", "gpu1"})]
)
def test_only_the_gpus_of_the_run_are_measured(visible: str | None, expected: set[str]) -> None:
    assert {name for name, _ in GpuSampler(Driver(), visible).sample() if "_" not in name} == expected


def test_a_machine_without_a_driver_has_no_gpu_sampler() -> None:
    sampler = GpuSampler.of_this_machine(None)
    assert sampler is None or list(sampler.sample()) is not None
