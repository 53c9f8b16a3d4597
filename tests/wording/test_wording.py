"""Behavior does not depend on the wording of messages: tests of behavior pass with every message in upper case."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from wording.uppercase import copy_in_upper_case

ROOT = Path(__file__).parents[2]
BEHAVIOR = (
    "tests/lifecycle",
    "tests/orchestrator",
    "tests/sweeps/test_sweep_driving.py",
    "tests/journeys/test_attempts.py",
)
COMPARES_TEXT = (  # behavior tests that also compare a message
    "tests/sweeps/test_sweep_driving.py::test_reports_not_judged_before_a_restart_are_judged_after_it",
    "tests/sweeps/test_sweep_driving.py::test_an_early_stop_that_was_not_sent_before_a_restart_is_sent_after_it",
    "tests/sweeps/test_sweep_driving.py::test_a_decided_end_survives_a_restart",
)


@pytest.mark.real
@pytest.mark.timeout(900)
def test_behavior_is_the_same_with_every_message_in_upper_case(tmp_path: Path) -> None:
    changed = copy_in_upper_case(ROOT / "src" / "runyard", tmp_path)
    assert changed > 1000
    command = [sys.executable, "-m", "pytest", "-q", "-p", "ignore_case", "-p", "no:cacheprovider", *BEHAVIOR]
    command += [f"--deselect={name}" for name in COMPARES_TEXT]
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parent)])
    result = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-2000:]
    assert " passed" in result.stdout


def test_code_that_recognizes_a_message_by_its_wording_is_found(tmp_path: Path) -> None:
    package = tmp_path / "source" / "example"
    package.mkdir(parents=True)
    package.joinpath("__init__.py").write_text(
        'def warn() -> str:\n    return "the file was not stored"\n\n\n'
        'def is_incomplete() -> bool:\n    return "was not stored" in warn()\n'
    )
    assert copy_in_upper_case(package, tmp_path / "copy") == 1
    program = "import example; print(example.is_incomplete())"
    result = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "copy")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout == "False\n"
