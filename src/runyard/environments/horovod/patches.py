"""What is changed in a copy of Horovod's source so that today's compilers and frameworks take it.

Horovod 0.28.1 is the last release; it was written for C++14, PyTorch 1, Keras 2 and Python 3.11 at most.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path

from runyard.errors import EnvironmentException

VERSIONS = ("0.28.1",)

_KERAS3 = Path(__file__).parent / "files" / "keras3.py.txt"  # a module for Horovod's package, not for ours
# Of the content and not a number to raise: a change here makes other wheels of the same source.
RECIPE = hashlib.sha256(Path(__file__).read_bytes() + _KERAS3.read_bytes()).hexdigest()[:12]

_BACKEND = "from horovod._keras.keras3 import K\n"

_STANDARD = re.compile(r"(set\(CMAKE_CXX_STANDARD) \d+\)")
# lib/python3.11/site-packages/horovod/torch/mpi_lib_v2.so, seen from itself: Open MPI's folder, then the frameworks'
_RUN_PATH = ("$ORIGIN/../../../..", "$ORIGIN/../../torch/lib", "$ORIGIN/../../tensorflow")


def patch(source: Path) -> None:
    """Changes the unpacked source in place."""
    for name, change in _CHANGES.items():
        path = source / name
        path.write_text(_changed(name, path.read_text(), change))
    (source / "horovod" / "_keras" / "keras3.py").write_text(_KERAS3.read_text())


def cxx_standard_20(text: str) -> str:
    """The headers of torch 2 and of TensorFlow 2.2x use C++17 and C++20."""
    return _STANDARD.sub(r"\1 20)", text)


def root_cmake(text: str) -> str:
    text = cxx_standard_20(text)
    # An absolute run path would lead to the folder of the build, which is gone when the wheel is used; and debug
    # information makes the library ten times as big.
    paths = ":".join(f"\\{path}" for path in _RUN_PATH)
    ours = (
        "set(CMAKE_SKIP_RPATH ON)\n"
        f"set(CMAKE_SHARED_LINKER_FLAGS \"${{CMAKE_SHARED_LINKER_FLAGS}} -Wl,-rpath,'{paths}'\")\n"
        'string(REGEX REPLACE "(^| )-g( |$)" " " CMAKE_CXX_FLAGS_RELWITHDEBINFO "${CMAKE_CXX_FLAGS_RELWITHDEBINFO}")\n'
    )
    return text.replace("project(horovod CXX)\n", f"project(horovod CXX)\n{ours}", 1)


def torch_cmake(text: str) -> str:
    # distutils left Python with 3.12
    text = text.replace(
        "from distutils.sysconfig import get_python_inc; print(get_python_inc())",
        "import sysconfig; print(sysconfig.get_path('include'))",
    )
    return cxx_standard_20(text)


def tensorflow_cmake(text: str) -> str:
    # TensorFlow's wheel does not ship the highwayhash headers that the XLA ops need
    left_out = [line for line in text.splitlines(keepends=True) if "xla_mpi_ops.cc" not in line]
    return cxx_standard_20("".join(left_out))


def setup_py(text: str) -> str:
    # handed to the native build tool, which is ninja here and takes it for a target
    text = text.replace("make_args.append('VERBOSE=1')", "pass")
    # what it needs is there already; newer setuptools have no way to fetch it
    return re.sub(r"\n *setup_requires=[^\n]*", "", text)


def without_distutils(text: str) -> str:
    return text.replace("from distutils.spawn import find_executable", "from shutil import which as find_executable")


def knows_keras_variables(text: str) -> str:
    """Keras 3 has variables of its own around TensorFlow's, without the `ref` that Horovod tells them apart by."""
    text = re.sub(r"\b(\w+)\.ref\(\)", r"plain_variable(\1).ref()", text)
    return f"from horovod.tensorflow.util import plain_variable\n{text}"


def tensorflow_util(text: str) -> str:
    unwrap = (
        "\n\ndef plain_variable(variable):\n"
        '    """TensorFlow\'s variable inside of a Keras 3 variable; anything else as it is."""\n'
        "    inner = getattr(variable, 'value', None)\n"
        "    return inner if isinstance(inner, tf.Variable) else variable\n"
    )
    return text.replace("vars.ref()", "plain_variable(vars).ref()") + unwrap


def tensorflow_functions(text: str) -> str:
    return knows_keras_variables(text).replace(
        "    if inplace:\n        vars_by_device",
        "    variables = [plain_variable(variable) for variable in variables]\n    if inplace:\n        vars_by_device",
    )


def keras_module(text: str) -> str:
    """`horovod.keras` and `horovod.tensorflow.keras`, with their callbacks: what they take from Keras' backend."""
    text = text.replace("import keras.backend as K\n", _BACKEND)
    text = text.replace("    from keras import backend as K\n", f"    {_BACKEND}")
    return text.replace("isinstance(local_variables, tf.Variable)", "hasattr(local_variables, 'assign')").replace(
        "isinstance(var, tf.Variable)", "hasattr(var, 'assign')"
    )


def keras_optimizers(text: str) -> str:
    create = (
        "\n    from horovod._keras import keras3\n"
        "    if keras3.ACTIVE:\n"
        "        return keras3.create_distributed_optimizer(\n"
        "            optimizer, name, device_dense, device_sparse, compression, sparse_as_dense,\n"
        "            gradient_predivide_factor, op, backward_passes_per_step, groups, process_set,\n"
        "            scale_local_gradients)"
    )
    load = (
        "\n    from horovod._keras import keras3\n"
        "    if keras3.ACTIVE:\n"
        "        return keras3.load_model(wrap_optimizer, filepath, custom_objects)"
    )
    text = knows_keras_variables(text)
    text = re.sub(r"(def create_distributed_optimizer\([^)]*\):)", lambda found: found[1] + create, text)
    return re.sub(r"(def load_model\([^)]*\):)", lambda found: found[1] + load, text)


def keras_callbacks(text: str) -> str:
    text = knows_keras_variables(text)
    text = text.replace(
        "                # TensorFlow 2.0 or TensorFlow eager\n",
        "                from horovod._keras import keras3\n"
        "                if keras3.ACTIVE:\n"
        "                    keras3.broadcast_model(self.model, self.root_rank, self._local_vars)\n"
        "                    self.broadcast_done = True\n"
        "                    return\n",
    )
    # a Python number in Keras 3, compiled into the step: there is nothing to correct it in
    return text.replace(
        "hasattr(self.model.optimizer, 'momentum') and self.momentum_correction",
        "hasattr(getattr(self.model.optimizer, 'momentum', None), 'assign') and self.momentum_correction",
    )


def _changed(name: str, text: str, change: Callable[[str], str]) -> str:
    changed = change(text)
    if changed == text:
        raise EnvironmentException(
            f"Horovod's source is not the one that the recipe knows: nothing to change in {name}",
            hint=f"versions of Horovod that can be built: {', '.join(VERSIONS)}",
        )
    return changed


_CHANGES: dict[str, Callable[[str], str]] = {
    "CMakeLists.txt": root_cmake,
    "horovod/torch/CMakeLists.txt": torch_cmake,
    "horovod/tensorflow/CMakeLists.txt": tensorflow_cmake,
    "setup.py": setup_py,
    "horovod/runner/js_run.py": without_distutils,
    "horovod/tensorflow/__init__.py": knows_keras_variables,
    "horovod/tensorflow/functions.py": tensorflow_functions,
    "horovod/tensorflow/gradient_aggregation.py": knows_keras_variables,
    "horovod/tensorflow/gradient_aggregation_eager.py": knows_keras_variables,
    "horovod/tensorflow/util.py": tensorflow_util,
    "horovod/_keras/__init__.py": keras_optimizers,
    "horovod/_keras/callbacks.py": keras_callbacks,
    "horovod/keras/__init__.py": keras_module,
    "horovod/keras/callbacks.py": keras_module,
    "horovod/tensorflow/keras/__init__.py": keras_module,
    "horovod/tensorflow/keras/callbacks.py": keras_module,
}
