"""Names that scoring scripts import and that need not be installed: they are found here when they are nowhere else."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Optional

# module -> where its names come from
_OURS = {
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
_ABOVE = {name.rsplit(".", depth)[0] for name in _OURS for depth in range(1, name.count(".") + 1)}


def install() -> None:
    """Asked last: a package that is installed is the one that a script gets."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())


class _Finder(MetaPathFinder):
    def find_spec(
        self, name: str, path: Optional[Sequence[str]] = None, target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        if name in _OURS or name in _ABOVE:
            return ModuleSpec(name, _Maker(), is_package=name in _ABOVE)
        return None


class _Maker(Loader):
    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__ in _OURS:
            home, names = _OURS[module.__name__]
            source = importlib.import_module(home)
            for name in names:
                setattr(module, name, getattr(source, name))
