"""Notebooks: magics, files that cells write, cells that are not Python, and misleading code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from migration_support import notebook, script, summary

from runyard.errors import UserErrorException
from runyard.migration.scan import scan


def test_magics_and_commands_are_not_errors(tmp_path: Path) -> None:
    report = notebook(
        tmp_path,
        """
        %matplotlib inline
        import numpy as np
        files = !ls *.py
        lines = %sx wc -l train.py
        np.arange?
        if files:
            !rm -f one \\
                two
        print("100 %"
              % files)
        """,
        "%%time\nx = np.float(3)",
        "%%bash\necho $((1 + 1))\n",
        "%%html\n<b>no Python</b>",
        "%sh\nls -la /dbfs",
        "mkdir data",
        "  y = 1\n  z = 2\n",
        "await something()",
    )
    assert [(f.rule, f.cell, f.line) for f in report.findings] == [("numpy-removed", 2, 2)]


def test_a_script_that_a_cell_writes_has_separate_names(tmp_path: Path) -> None:
    report = notebook(
        tmp_path,
        "import tensorflow as tf",
        """
        %%writefile project/score.py
        import tensorflow.compat.v1 as tf
        import numpy as np
        def init():
            tf.Session()
            np.int(1)
        """,
        "%%writefile myenv.yml\nname: not python",
    )
    assert [(f.rule, f.cell, f.line) for f in report.findings] == [("numpy-removed", 2, 6)]


def test_an_invalid_cell_is_reported_and_the_others_are_scanned(tmp_path: Path) -> None:
    report = notebook(
        tmp_path,
        "from azureml.core import Run",
        "run = Run.get_context()\nprint(run.get_file_names()",
        "import numpy as np\nnp.float(1)",
    )
    assert [(f.rule, f.cell) for f in report.findings] == [("syntax", 2), ("numpy-removed", 3)]
    assert report.verdict == "attention"


def test_a_python_2_script_is_recognized(tmp_path: Path) -> None:
    report = script(tmp_path, "x = 1\nprint 'loss', x\n")
    (finding,) = report.findings
    assert (finding.rule, finding.line, report.verdict) == ("syntax", 2, "unreadable")
    assert "Python 2" in finding.remedy


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("cut.ipynb", b'{"cells": [{"cell_type": "co'),
        ("list.ipynb", b"[1, 2]"),
        ("number.ipynb", b'{"cells": 3}'),
        ("empty.ipynb", b""),
        ("latin.py", b"# -*- coding: utf-8 -*-\nx = '\xe9'\n"),
        ("null.py", b"x = 1\x00\n"),
        ("deep.py", b"x = " + b"(" * 5000 + b")" * 5000),
        ("encoding.py", b"# -*- coding: klingon -*-\nx = 1\n"),
    ],
)
def test_an_unreadable_file_is_reported(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    (file,) = scan(tmp_path).files
    assert [finding.rule for finding in file.findings] == ["syntax"]


def test_notebook_format_3_is_supported(tmp_path: Path) -> None:
    cells = [{"cell_type": "code", "input": ["import numpy as np\n", "np.float(1)"]}]
    (tmp_path / "old.ipynb").write_text(json.dumps({"worksheets": [{"cells": cells}], "nbformat": 3}))
    (file,) = scan(tmp_path).files
    assert summary(file) == [("numpy-removed", "np.float", 2)]


def test_installing_the_retired_sdk_is_reported(tmp_path: Path) -> None:
    report = notebook(
        tmp_path,
        "!pip install --upgrade azureml-sdk[notebooks]",
        "%pip install azureml-contrib-tensorboard",
        "!jupyter nbextension install --py --user azureml.widgets",
        "!pip install pandas",
        "!az login",
    )
    assert [(f.rule, f.severity, f.cell) for f in report.findings] == [
        ("other-sdk", "error", 1),
        ("other-sdk", "error", 2),
        ("other-sdk", "note", 3),
        ("azure-only", "warning", 5),
    ]


def test_an_unused_child_run_is_reported(tmp_path: Path) -> None:
    report = notebook(
        tmp_path,
        "from azureml.core import Experiment, Workspace",
        "root = Experiment(Workspace.from_config(), 'x').start_logging()",
        "with root.child_run('a') as child:\n    root.log('mse', 1)",
        "with root.child_run('b') as child:\n    child.log('mse', 1)",
    )
    assert [(f.rule, f.cell, f.line) for f in report.findings] == [("surprise", 3, 1)]


def test_comparing_a_process_with_a_number_is_reported(tmp_path: Path) -> None:
    report = notebook(tmp_path, "import subprocess\nif subprocess.run(['docker', '-v']) == 0:\n    print('docker')")
    assert [(f.rule, f.line) for f in report.findings] == [("surprise", 2)]


def test_an_estimator_that_is_never_submitted_is_reported(tmp_path: Path) -> None:
    report = notebook(
        tmp_path,
        "from azureml.core import Experiment, Workspace\nfrom azureml.train.dnn import Gloo, Nccl, PyTorch",
        "est = PyTorch(source_directory='.', compute_target='local', distributed_training=Nccl())",
        "run = Experiment(Workspace.from_config(), 'x').submit(est, {'--lr': 0.1})",
        "est = PyTorch(source_directory='.', compute_target='local', distributed_training=Gloo())",
    )
    assert [(f.rule, f.severity, f.cell) for f in report.findings] == [("surprise", "note", 3), ("surprise", "note", 4)]
    assert report.verdict == "runs"


def test_environments_and_hidden_folders_are_skipped(tmp_path: Path) -> None:
    for name in ("a.py", "sub/b.ipynb", ".ipynb_checkpoints/b.ipynb", "venv/x.py", "mine/lib/y.py", "notes.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('{"cells": []}' if path.suffix == ".ipynb" else "x = 1\n")
    (tmp_path / "mine" / "pyvenv.cfg").touch()
    assert [file.path for file in scan(tmp_path).files] == ["a.py", "sub/b.ipynb"]


@pytest.mark.parametrize("name", ["nowhere.py", "notes.txt", "empty"])
def test_a_path_without_scripts_is_an_error(name: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserErrorException, match=name):
        scan(tmp_path / name)
