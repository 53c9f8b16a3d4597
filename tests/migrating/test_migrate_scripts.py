"""What changed around training scripts: frameworks, packages, hosts."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from migrating_support import notebook, script, told

from runyard.migration import removed_apis


def test_names_of_tensorflow_1_under_any_name_of_the_module(tmp_path: Path) -> None:
    report = script(
        tmp_path,
        """
        import tensorflow as flow
        from tensorflow import placeholder
        x = flow.placeholder(flow.float32, [None, 64])
        with flow.Session() as session:
            flow.train.AdamOptimizer(0.1)
        flow.contrib.layers.fully_connected(x, 10)
        flow.keras.layers.Dense(10)
        """,
    )
    assert told(report) == [
        ("tensorflow-1", "tensorflow.placeholder", 2),
        ("tensorflow-1", "flow.placeholder", 3),
        ("tensorflow-1", "flow.Session", 4),
        ("tensorflow-1", "flow.train.AdamOptimizer", 5),
        ("tensorflow-1", "flow.contrib", 6),
    ]
    assert "compat.v1" in report.findings[1].remedy
    assert "compat.v1" not in report.findings[4].remedy


@pytest.mark.parametrize(
    "head",
    [
        "import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()",
        "import tensorflow as tf\nif tf.__version__ > '2':\n    tf = tf.compat.v1",
        "import tensorflow as tf\ntf = tf.compat.v1",
    ],
)
def test_a_script_that_asks_for_the_names_of_tensorflow_1_has_them(head: str, tmp_path: Path) -> None:
    report = script(tmp_path, f"{head}\nwith tf.Session():\n    tf.global_variables_initializer()\n")
    assert told(report) == []


def test_layers_are_gone_from_the_old_names_as_well(tmp_path: Path) -> None:
    report = script(tmp_path, "import tensorflow.compat.v1 as tf\ntf.layers.dense(x, 10)\n")
    assert told(report) == [("tensorflow-1", "tf.layers", 2)]


def test_names_that_numpy_removed(tmp_path: Path) -> None:
    report = script(
        tmp_path,
        """
        import numpy as np
        from numpy import float as number
        a = np.zeros(3, dtype=np.float)
        b = np.bool
        c = np.float32(np.pi)
        """,
    )
    assert [(f.rule, f.severity, f.line) for f in report.findings] == [
        ("numpy-removed", "error", 2),
        ("numpy-removed", "error", 3),
        ("numpy-removed", "note", 4),
    ]


def test_what_is_said_to_be_gone_from_numpy_is_gone_from_the_one_installed() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [name for name in removed_apis.NUMPY if hasattr(np, name)] == []
        if np.lib.NumpyVersion(np.__version__) >= "2.4.0":
            assert [name for name in removed_apis.NUMPY_2_4 if hasattr(np, name)] == []
        if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
            assert [name for name in removed_apis.NUMPY_BACK if not hasattr(np, name)] == []


def test_modules_that_packages_removed(tmp_path: Path) -> None:
    report = script(
        tmp_path,
        """
        import cntk as C
        from sklearn.externals import joblib
        from sklearn.datasets import load_boston, load_digits
        import mlflow, time
        mlflow.azureml.deploy()
        start = time.clock()
        """,
    )
    assert told(report) == [
        ("package-removed", "cntk", 1),
        ("package-removed", "sklearn.externals.joblib", 2),
        ("package-removed", "sklearn.datasets.load_boston", 3),
        ("package-removed", "mlflow.azureml", 5),
        ("package-removed", "time.clock", 6),
    ]


def test_downloads_from_hosts_that_are_gone_in_code_and_in_commands(tmp_path: Path) -> None:
    report = notebook(
        tmp_path,
        """
        '''A text that names http://yann.lecun.com/ downloads nothing.'''
        import urllib.request  # nor does http://yann.lecun.com/ here
        urllib.request.urlretrieve('http://yann.lecun.com/exdb/mnist/train-images-idx3-ubyte.gz', 'x.gz')
        url = f"https://onnxzoo.blob.core.windows.net/models/{name}"
        """,
        "!wget https://s3.amazonaws.com/onnx-model-zoo/mnist.tar.gz",
        "data = 'https://someone.blob.core.windows.net/public/data.csv'",
        "fine = 'https://archive.ics.uci.edu/ml'",
    )
    assert [(f.rule, f.severity, f.cell, f.line) for f in report.findings] == [
        ("dead-download", "error", 1, 3),
        ("dead-download", "error", 1, 4),
        ("dead-download", "error", 2, 1),
        ("azure-storage", "warning", 3, 1),
    ]


def test_code_for_a_gpu_alone_is_told_unless_it_asks_whether_there_is_one(tmp_path: Path) -> None:
    report = script(tmp_path, "import torch\nmodel = torch.nn.Linear(2, 2)\nmodel.cuda()\n")
    assert told(report) == [("gpu-only", "model.cuda", 3)]
    careful = "import torch\nmodel = torch.nn.Linear(2, 2)\nif torch.cuda.is_available():\n    model.cuda()\n"
    assert told(script(tmp_path, careful)) == []
