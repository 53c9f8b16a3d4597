"""APIs that packages have removed, and hosts that no longer exist."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

# Names of the module `numpy` itself. A test checks them against the installed NumPy.
NUMPY = {
    **{name: f"{name}, the built-in type" for name in ("float", "int", "complex", "object", "str")},
    "unicode": "str, the built-in type",
    "float_": "np.float64",
    "complex_": "np.complex128",
    "longfloat": "np.longdouble",
    "singlecomplex": "np.complex64",
    "cfloat": "np.complex128",
    "unicode_": "np.str_",
    "string_": "np.bytes_",
    **dict.fromkeys(("Inf", "Infinity", "infty", "PINF"), "np.inf"),
    "NINF": "-np.inf",
    "NaN": "np.nan",
    "asfarray": "np.asarray(x, dtype=float)",
    "mat": "np.asmatrix",
    "product": "np.prod",
    "cumproduct": "np.cumprod",
    "sometrue": "np.any",
    "alltrue": "np.all",
    "round_": "np.round",
    "msort": "np.sort(x, axis=0)",
    "find_common_type": "np.result_type",
    "cast": "np.asarray(x, dtype=…)",
    "issubsctype": "np.issubdtype",
    "safe_eval": "ast.literal_eval",
}
NUMPY_2_4 = {"trapz": "np.trapezoid", "in1d": "np.isin"}  # removed in 2.4
# Removed in 1.24 as aliases of built-in types; since 2.0 they are NumPy types.
NUMPY_REINTRODUCED = {"bool": "bool, or np.bool_", "long": "int, or np.int64"}

TENSORFLOW_REMOVED = {
    "contrib": "its parts are separate packages: tensorflow-addons, tf-slim, tensorflow-probability",
    "layers": "tf.keras.layers",
    "nn.rnn_cell": "tf.keras.layers.LSTMCell and similar classes",
    "estimator": "tf.keras, or a custom training loop",
    "examples": "use sklearn.datasets or tf.keras.datasets",
}

PACKAGES = {
    "cntk": "CNTK ended in 2019 with Python 3.6; ONNX Runtime runs its models after an export",
    "chainer": "Chainer ended in 2022, and its last release does not run with a current NumPy; use PyTorch",
    "mxnet": "MXNet was retired in 2023, and its last release does not run with a current NumPy",
    "caffe2": "it became a part of PyTorch, and was then removed",
    "fastai.vision.transform": "fastai 2 has no such module: its names are in fastai.vision.all",
    "mlflow.azureml": "MLflow removed it: register the model with Model.register, deploy with Model.deploy",
    "keras.utils.np_utils": "keras.utils has to_categorical",
    "keras.layers.core": "keras.layers",
    "keras.layers.normalization.BatchNormalization": "keras.layers.BatchNormalization",
    "keras.backend.tensorflow_backend": "tf.keras.backend",
    "keras.utils.vis_utils": "keras.utils has plot_model",
    "pandas.Panel": "a DataFrame with a MultiIndex",
    "scipy.misc": "imageio or Pillow for images; scipy.datasets for its samples",
    "sklearn.cross_validation": "sklearn.model_selection",
    "sklearn.datasets.fetch_mldata": "fetch_openml; the host of fetch_mldata no longer exists",
    "sklearn.datasets.load_boston": "another dataset, such as load_diabetes",
    "sklearn.externals.joblib": "import joblib",
    "sklearn.externals.six": "not necessary in Python 3",
    "sklearn.grid_search": "sklearn.model_selection",
    "sklearn.preprocessing.Imputer": "sklearn.impute.SimpleImputer",
    "time.clock": "time.perf_counter",
    "torch.utils.ffi": "torch.utils.cpp_extension",
    "torchvision.transforms.RandomSizedCrop": "RandomResizedCrop",
    "torchvision.transforms.Scale": "Resize",
}

# the oldest release with wheels for Python 3.9, the oldest that runs can use
OLDEST_RELEASES = {
    "numpy": "1.19.3",
    "onnxruntime": "1.7.0",
    "pandas": "1.1.3",
    "scikit-learn": "0.24.0",
    "scipy": "1.5.4",
    "tensorflow": "2.5.0",
    "torch": "1.7.1",
    "torchvision": "0.8.2",
}
# dependencies of the release that an estimator installs, where old scripts pin older versions
REQUIRED_BY = {"SKLearn": {"joblib": "1.4.0"}}
NOT_INSTALLABLE = {
    "sklearn": "the package is named scikit-learn",
    "tensorflow-gpu": "tensorflow includes GPU support; the TensorFlow estimator installs it",
    "cntk": PACKAGES["cntk"],
    "cntk-gpu": PACKAGES["cntk"],
}

HOSTS = {
    "yann.lecun.com": "closed to downloads since 2024; storage.googleapis.com/cvdf-datasets/mnist has the same files",
    "mldata.org": "closed; openml.org has its datasets",
    "www.cntk.ai": "closed together with CNTK",
    "cntk.ai": "closed together with CNTK",
    "onnxzoo.blob.core.windows.net": "closed; the ONNX model zoo is on GitHub and Hugging Face",
    "s3.amazonaws.com/onnx-model-zoo": "closed; the ONNX model zoo is on GitHub and Hugging Face",
    "s3.amazonaws.com/download.onnx": "closed; the ONNX model zoo is on GitHub and Hugging Face",
    "batchaisamples.blob.core.windows.net": "closed together with Batch AI",
    "pipelinedata.blob.core.windows.net": "closed",
    "dl.bintray.com": "Bintray was shut down in 2021",
    "rawgit.com": "RawGit was shut down; raw.githubusercontent.com has the same files",
    "cdn.rawgit.com": "RawGit was shut down; raw.githubusercontent.com has the same files",
}
STORAGE_HOST = ".blob.core.windows.net"


@lru_cache(maxsize=1)
def tensorflow_1() -> frozenset[str]:
    """Return the names that `tf.compat.v1` of TensorFlow 2.21 has and `tf` does not have."""
    return frozenset((files("runyard.migration") / "tensorflow_1.txt").read_text(encoding="ascii").split())
