"""Checks of frameworks, packages and hosts in training scripts."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from migration_support import notebook, script, summary

from runyard.migration import removed_apis


def test_tensorflow_1_names_are_reported_under_any_module_alias(tmp_path: Path) -> None:
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
    assert summary(report) == [
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
def test_tensorflow_1_names_are_allowed_with_compat_v1(head: str, tmp_path: Path) -> None:
    report = script(tmp_path, f"{head}\nwith tf.Session():\n    tf.global_variables_initializer()\n")
    assert summary(report) == []


def test_tf_layers_is_reported_even_with_compat_v1(tmp_path: Path) -> None:
    report = script(tmp_path, "import tensorflow.compat.v1 as tf\ntf.layers.dense(x, 10)\n")
    assert summary(report) == [("tensorflow-1", "tf.layers", 2)]


def test_removed_numpy_names_are_reported(tmp_path: Path) -> None:
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


def test_the_installed_numpy_lacks_all_listed_names() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [name for name in removed_apis.NUMPY if hasattr(np, name)] == []
        if np.lib.NumpyVersion(np.__version__) >= "2.4.0":
            assert [name for name in removed_apis.NUMPY_2_4 if hasattr(np, name)] == []
        if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
            assert [name for name in removed_apis.NUMPY_REINTRODUCED if not hasattr(np, name)] == []


def test_removed_modules_are_reported(tmp_path: Path) -> None:
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
    assert summary(report) == [
        ("package-removed", "cntk", 1),
        ("package-removed", "sklearn.externals.joblib", 2),
        ("package-removed", "sklearn.datasets.load_boston", 3),
        ("package-removed", "mlflow.azureml", 5),
        ("package-removed", "time.clock", 6),
    ]


def test_downloads_from_closed_hosts_are_reported(tmp_path: Path) -> None:
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


def test_gpu_only_code_is_reported_unless_it_checks_for_a_gpu(tmp_path: Path) -> None:
    report = script(tmp_path, "import torch\nmodel = torch.nn.Linear(2, 2)\nmodel.cuda()\n")
    assert summary(report) == [("gpu-only", "model.cuda", 3)]
    careful = "import torch\nmodel = torch.nn.Linear(2, 2)\nif torch.cuda.is_available():\n    model.cuda()\n"
    assert summary(script(tmp_path, careful)) == []
