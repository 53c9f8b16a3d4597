"""What the packages of training scripts no longer have, and hosts that no longer answer."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

# Names that stood directly in `numpy`. A test asks the NumPy that is installed whether they are really gone.
NUMPY = {
    **{name: f"{name}, Python's own" for name in ("float", "int", "complex", "object", "str")},
    "unicode": "str, Python's own",
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
NUMPY_2_4 = {"trapz": "np.trapezoid", "in1d": "np.isin"}  # gone only there
# Gone from 1.24 on and back since 2.0, where they are NumPy's own types and not Python's.
NUMPY_BACK = {"bool": "bool, or np.bool_", "long": "int, or np.int64"}

TENSORFLOW_WITHOUT_A_WAY = {
    "contrib": "its parts live on in packages of their own: tensorflow-addons, tf-slim, tensorflow-probability",
    "layers": "tf.keras.layers",
    "nn.rnn_cell": "tf.keras.layers.LSTMCell and its kin",
    "estimator": "tf.keras, or a loop of your own",
    "examples": "sklearn.datasets or tf.keras.datasets bring such data",
}

PACKAGES = {
    "cntk": "CNTK ended in 2019 with Python 3.6: its models are read by ONNX Runtime after an export",
    "chainer": "Chainer ended in 2022, and its last release does not run with today's NumPy: PyTorch is its heir",
    "mxnet": "MXNet was retired in 2023, and its last release does not run with today's NumPy",
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
    "sklearn.datasets.fetch_mldata": "fetch_openml; its host is gone as well",
    "sklearn.datasets.load_boston": "another set, such as load_diabetes",
    "sklearn.externals.joblib": "import joblib by itself",
    "sklearn.externals.six": "Python 3 needs none",
    "sklearn.grid_search": "sklearn.model_selection",
    "sklearn.preprocessing.Imputer": "sklearn.impute.SimpleImputer",
    "time.clock": "time.perf_counter",
    "torch.utils.ffi": "torch.utils.cpp_extension",
    "torchvision.transforms.RandomSizedCrop": "RandomResizedCrop",
    "torchvision.transforms.Scale": "Resize",
}

# the oldest release with wheels for a Python that runs can use, 3.9
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
# what the release that an estimator brings needs of others, where old scripts asked for less
NEEDED_BY = {"SKLearn": {"joblib": "1.4.0"}}
NOT_INSTALLABLE = {
    "sklearn": "the package is called scikit-learn",
    "tensorflow-gpu": "tensorflow itself has the GPU's parts; the TensorFlow estimator brings it",
    "cntk": PACKAGES["cntk"],
    "cntk-gpu": PACKAGES["cntk"],
}

HOSTS = {
    "yann.lecun.com": "closed to downloads since 2024; storage.googleapis.com/cvdf-datasets/mnist has the same files",
    "mldata.org": "it is gone; openml.org has its sets",
    "www.cntk.ai": "it was taken down with CNTK",
    "cntk.ai": "it was taken down with CNTK",
    "onnxzoo.blob.core.windows.net": "it is gone; the ONNX model zoo is on GitHub and Hugging Face",
    "s3.amazonaws.com/onnx-model-zoo": "it is gone; the ONNX model zoo is on GitHub and Hugging Face",
    "s3.amazonaws.com/download.onnx": "it is gone; the ONNX model zoo is on GitHub and Hugging Face",
    "batchaisamples.blob.core.windows.net": "it went with Batch AI",
    "pipelinedata.blob.core.windows.net": "it is gone",
    "dl.bintray.com": "Bintray was shut down in 2021",
    "rawgit.com": "RawGit was shut down; raw.githubusercontent.com has the same files",
    "cdn.rawgit.com": "RawGit was shut down; raw.githubusercontent.com has the same files",
}
STORAGE_HOST = ".blob.core.windows.net"


@lru_cache(maxsize=1)
def tensorflow_1() -> frozenset[str]:
    """What `tf.compat.v1` of TensorFlow 2.21 has and `tf` has not."""
    return frozenset((files("runyard.migration") / "tensorflow_1.txt").read_text(encoding="ascii").split())
