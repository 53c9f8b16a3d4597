"""Temporary folders of agents: those of killed agents are deleted by later ones, those of living agents are not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard.agent.process import scratch

HOLD = """
import sys, tempfile
from runyard.agent.process.scratch import Scratch
tempfile.tempdir = sys.argv[1]
held = Scratch(sys.argv[2], 1)
print(held.folder, held.shared_memory, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="ry") as name:
        monkeypatch.setattr(tempfile, "tempdir", name)
        yield name


def start_agent(folder: str, tag: str) -> tuple[subprocess.Popen[str], list[Path]]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, folder, tag], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, [Path(path) for path in process.stdout.readline().split()]


def end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_folders_of_killed_agents_are_deleted_by_a_later_agent_of_another_run(folder: str) -> None:
    killed, left = start_agent(folder, f"killed-{os.getpid()}")
    living, used = start_agent(folder, f"living-{os.getpid()}")
    try:
        end(killed)
        assert all(path.exists() for path in left)
        scratch.clear_abandoned(age_s=3600)
        assert all(path.exists() for path in left)  # its processes may still use them
        scratch.clear_abandoned(age_s=-1)
        assert not any(path.exists() for path in left)
        assert all(path.exists() for path in used)
    finally:
        end(living)
        scratch.clear_leftovers(f"living-{os.getpid()}")
    assert not any(path.exists() for path in used)


def test_an_agent_deletes_its_folders_at_the_end(folder: str) -> None:
    own = scratch.Scratch(f"run-{os.getpid()}", 0)
    assert own.folder.exists()
    own.clear()
    assert not own.folder.exists()
    assert not own.shared_memory.exists()
