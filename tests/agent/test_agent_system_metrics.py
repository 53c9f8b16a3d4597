"""What an agent measures of its machine."""

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
    """As much of NVIDIA's library as is called: two cards, of which the second tells no power."""

    def nvmlInit_v2(self) -> int:  # noqa: N802
        return 0

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:  # noqa: N802
        count._obj.value = 2
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index: int, handle: Any) -> int:  # noqa: N802
        handle._obj.value = index + 1
        return 0

    def nvmlDeviceGetUtilizationRates(self, handle: ctypes.c_void_p, used: Any) -> int:  # noqa: N802
        used._obj.gpu = 40 + (handle.value or 0)
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


def test_processors_memory_disk_and_network_are_measured_and_kept(tmp_path: Path) -> None:
    sampler = SystemSampler(RunFolder(tmp_path), "node-3", 3, None, first_s=0.0, every_s=0.02)

    def has_measured() -> bool:
        sampler.poll()
        return any((tmp_path / "system").glob("*.seg"))

    eventually(has_measured, "something was measured")
    database = open_database(tmp_path / "yard.db")
    ingest(database, "r/system", RunFolder(tmp_path).system)
    found = {series.name: series.last for series in list_series(database, "r/system")}
    database.close()
    names = ("cpu", "memory", "memory_gb", "disk", "disk_read", "disk_write", "network_in", "network_out")
    assert set(found) >= {f"node-3/{name}" for name in names}
    assert 0 <= found["node-3/cpu"] <= 100
    assert 0 < found["node-3/memory"] <= 100
    assert 0 < found["node-3/disk"] <= 100
    assert min(found.values()) >= 0


def test_it_says_how_long_it_can_wait_and_does_nothing_before(tmp_path: Path) -> None:
    sampler = SystemSampler(RunFolder(tmp_path), "local", 0, None)
    sampler.poll()
    assert 0 < sampler.due_in_s <= 1
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_does_not_stop_an_agent(tmp_path: Path) -> None:
    (tmp_path / "system").write_text("in the way")
    sampler = SystemSampler(RunFolder(tmp_path), "local", 0, None, first_s=0.0, every_s=0.0)
    for _ in range(5):
        sampler.poll()


def test_gpus_tell_what_they_can() -> None:
    found = dict(GpuSampler(Driver()).sample())
    assert found["gpu0"] == 41.0
    assert found["gpu0_memory"] == 25.0
    assert found["gpu1_memory_gb"] == 2.0
    assert found["gpu0_power"] == 150.5
    assert found["gpu1_temperature"] == 61.0
    assert "gpu1_power" not in found


@pytest.mark.parametrize(
    ("visible", "seen"), [(None, {"gpu0", "gpu1"}), ("1", {"gpu1"}), ("", set()), ("GPU-3f2a", {"gpu0", "gpu1"})]
)
def test_only_the_gpus_of_the_run_are_looked_at(visible: str | None, seen: set[str]) -> None:
    assert {name for name, _ in GpuSampler(Driver(), visible).sample() if "_" not in name} == seen


def test_a_machine_without_a_driver_has_no_gpus_to_tell_of() -> None:
    found = GpuSampler.of_this_machine(None)
    assert found is None or list(found.sample()) is not None
