from __future__ import annotations

import json
from pathlib import Path

import pytest

from runyard import clock
from runyard.posix import procfs
from runyard.spec.folder import RunFolder
from runyard.sweeps.sweep_clock import SweepClock


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path)


@pytest.mark.parametrize("jump_s", [86400.0, -86400.0])
def test_the_time_of_a_sweep_survives_jumps_of_the_clock_and_restarts_of_the_yard(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, jump_s: float
) -> None:
    created_at = clock.now() - 100
    assert 100 <= SweepClock(folder, created_at).elapsed_s() < 160
    monkeypatch.setattr(clock, "now", lambda: created_at + jump_s)
    assert 100 <= SweepClock(folder, created_at).elapsed_s() < 160


def test_true_time_passes(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep_clock = SweepClock(folder, clock.now())
    true_time = clock.since_boot()
    monkeypatch.setattr(clock, "since_boot", lambda: true_time + 3600)
    assert sweep_clock.elapsed_s() >= 3600


def test_after_a_restart_of_the_machine_the_clock_is_used(folder: RunFolder) -> None:
    folder.started.write_text(json.dumps({"boot_id": "an earlier boot", "since_boot": -1e9}))
    assert 50 <= SweepClock(folder, clock.now() - 50).elapsed_s() < 110
    assert json.loads(folder.started.read_text())["boot_id"] == procfs.boot_id()


@pytest.mark.parametrize(
    "content", ["", "[]", "null", '{"boot_id": 1}', '{"boot_id": "x", "since_boot": "y"}', "[" * 9999]
)
def test_a_damaged_file_is_replaced(folder: RunFolder, content: str) -> None:
    folder.started.write_text(content)
    assert 10 <= SweepClock(folder, clock.now() - 10).elapsed_s() < 70
