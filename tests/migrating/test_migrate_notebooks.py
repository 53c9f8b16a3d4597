"""Notebooks as they are: magics, files that cells write, cells that are not Python, and code that surprises."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from migrating_support import notebook, script, told

from runyard.errors import UserErrorException
from runyard.migration.scan import examine


def test_magics_and_commands_are_no_errors(tmp_path: Path) -> None:
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


def test_a_script_that_a_cell_writes_is_read_with_names_of_its_own(tmp_path: Path) -> None:
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


def test_a_cell_that_is_not_python_is_told_and_the_others_are_read(tmp_path: Path) -> None:
    report = notebook(
        tmp_path,
        "from azureml.core import Run",
        "run = Run.get_context()\nprint(run.get_file_names()",
        "import numpy as np\nnp.float(1)",
    )
    assert [(f.rule, f.cell) for f in report.findings] == [("syntax", 2), ("numpy-removed", 3)]
    assert report.verdict == "attention"


def test_a_script_in_python_2_says_so(tmp_path: Path) -> None:
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
def test_a_file_that_cannot_be_read_is_told_and_nothing_breaks(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    (file,) = examine(tmp_path).files
    assert [finding.rule for finding in file.findings] == ["syntax"]


def test_the_third_version_of_the_format_is_read_too(tmp_path: Path) -> None:
    cells = [{"cell_type": "code", "input": ["import numpy as np\n", "np.float(1)"]}]
    (tmp_path / "old.ipynb").write_text(json.dumps({"worksheets": [{"cells": cells}], "nbformat": 3}))
    (file,) = examine(tmp_path).files
    assert told(file) == [("numpy-removed", "np.float", 2)]


def test_installing_the_retired_sdk_is_told(tmp_path: Path) -> None:
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


def test_a_child_run_that_nothing_is_logged_to(tmp_path: Path) -> None:
    report = notebook(
        tmp_path,
        "from azureml.core import Experiment, Workspace",
        "root = Experiment(Workspace.from_config(), 'x').start_logging()",
        "with root.child_run('a') as child:\n    root.log('mse', 1)",
        "with root.child_run('b') as child:\n    child.log('mse', 1)",
    )
    assert [(f.rule, f.cell, f.line) for f in report.findings] == [("surprise", 3, 1)]


def test_a_finished_process_that_is_compared_with_a_number(tmp_path: Path) -> None:
    report = notebook(tmp_path, "import subprocess\nif subprocess.run(['docker', '-v']) == 0:\n    print('docker')")
    assert [(f.rule, f.line) for f in report.findings] == [("surprise", 2)]


def test_an_estimator_that_is_built_again_and_not_submitted_again(tmp_path: Path) -> None:
    report = notebook(
        tmp_path,
        "from azureml.core import Experiment, Workspace\nfrom azureml.train.dnn import Gloo, Nccl, PyTorch",
        "est = PyTorch(source_directory='.', compute_target='local', distributed_training=Nccl())",
        "run = Experiment(Workspace.from_config(), 'x').submit(est, {'--lr': 0.1})",
        "est = PyTorch(source_directory='.', compute_target='local', distributed_training=Gloo())",
    )
    assert [(f.rule, f.severity, f.cell) for f in report.findings] == [("surprise", "note", 3), ("surprise", "note", 4)]
    assert report.verdict == "runs"


def test_a_folder_is_read_without_environments_and_hidden_folders(tmp_path: Path) -> None:
    for place in ("a.py", "sub/b.ipynb", ".ipynb_checkpoints/b.ipynb", "venv/x.py", "mine/lib/y.py", "notes.txt"):
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('{"cells": []}' if path.suffix == ".ipynb" else "x = 1\n")
    (tmp_path / "mine" / "pyvenv.cfg").touch()
    assert [file.path for file in examine(tmp_path).files] == ["a.py", "sub/b.ipynb"]


@pytest.mark.parametrize("name", ["nowhere.py", "notes.txt", "empty"])
def test_a_path_that_is_nothing_to_read_is_one_error(name: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserErrorException, match=name):
        examine(tmp_path / name)
