"""The `runyard migrate` command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from runyard.migration.report import RULES

pytestmark = pytest.mark.real
TRAIN = """\
import numpy as np
import tensorflow as tf
from azureml.core import Run
run = Run.get_context()
x = tf.placeholder(tf.float32)
with tf.Session() as session:
    run.log("accuracy", np.float(1))
"""


def migrate(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "runyard", "migrate", *arguments]
    return subprocess.run(command, cwd=folder, env={**os.environ, "COLUMNS": "80"}, capture_output=True, text=True)


def test_the_report_lists_totals_then_files_with_lines_and_remedies(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "hello.py").write_text("from azureml.core import Run\nRun.get_context().log('x', 1)\n")
    result = migrate(tmp_path, ".")
    assert result.returncode == 1
    assert result.stderr == ""
    assert result.stdout.splitlines() == [
        "2 files: 1 runs unchanged, 1 needs attention",
        "",
        "train.py",
        "  line 5, 6:  names that TensorFlow 2 does not have: tf.placeholder, tf.Session  [tensorflow-1]",
        "      -> import tensorflow.compat.v1 as tf, then tf.disable_v2_behavior()",
        "  line 7:  np.float was removed from NumPy  [numpy-removed]",
        "      -> float, the built-in type",
        "",
        "runs unchanged:",
        "  hello.py   3 names of the SDK",
    ]


def test_the_json_report_has_stable_keys(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    result = migrate(tmp_path, "train.py", "--json")
    assert result.returncode == 1
    report = json.loads(result.stdout)
    assert list(report) == ["schema", "path", "summary", "files"]
    assert report["summary"] == {
        "files": 1,
        "runs": 0,
        "attention": 1,
        "unreadable": 0,
        "errors": 3,
        "warnings": 0,
        "notes": 0,
    }
    (file,) = report["files"]
    assert list(file) == ["path", "kind", "verdict", "sdk_names", "findings"]
    assert (file["path"], file["kind"], file["verdict"]) == ("train.py", "script", "attention")
    assert file["sdk_names"] == ["Run.get_context", "Run.log", "azureml.core.Run"]
    for finding in file["findings"]:
        assert list(finding) == ["rule", "severity", "name", "message", "remedy", "line", "cell"]
        assert finding["rule"] in RULES
    assert [finding["line"] for finding in file["findings"]] == [5, 6, 7]


def test_the_exit_code_is_0_if_everything_runs_unchanged(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    result = migrate(tmp_path, ".")
    assert (result.returncode, result.stdout.splitlines()[0]) == (0, "1 file: 1 runs unchanged")


def test_a_missing_path_is_an_error(tmp_path: Path) -> None:
    result = migrate(tmp_path, "nowhere")
    assert result.returncode == 1
    assert result.stderr.startswith("error: 'nowhere' does not exist")
