"""Import hook for ``inference_schema``: provides its names if the package is not installed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Optional

# module -> (implementing module, names)
_PROVIDED = {
    "inference_schema.schema_decorators": ("runyard.scoring.schema", ("input_schema", "output_schema")),
    "inference_schema.parameter_types.abstract_parameter_type": (
        "runyard.scoring.schema",
        ("AbstractParameterType",),
    ),
    "inference_schema.parameter_types.numpy_parameter_type": ("runyard.scoring.schema", ("NumpyParameterType",)),
    "inference_schema.parameter_types.pandas_parameter_type": ("runyard.scoring.schema", ("PandasParameterType",)),
    "inference_schema.parameter_types.spark_parameter_type": ("runyard.scoring.schema", ("SparkParameterType",)),
    "inference_schema.parameter_types.standard_py_parameter_type": (
        "runyard.scoring.schema",
        ("StandardPythonParameterType",),
    ),
}
_PARENTS = {name.rsplit(".", depth)[0] for name in _PROVIDED for depth in range(1, name.count(".") + 1)}


def install() -> None:
    """Append the finder, so that an installed package takes precedence."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())


class _Finder(MetaPathFinder):
    def find_spec(
        self, name: str, path: Optional[Sequence[str]] = None, target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        if name in _PROVIDED or name in _PARENTS:
            return ModuleSpec(name, _Loader(), is_package=name in _PARENTS)
        return None


class _Loader(Loader):
    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__ in _PROVIDED:
            home, names = _PROVIDED[module.__name__]
            source = importlib.import_module(home)
            for name in names:
                setattr(module, name, getattr(source, name))
