"""Import hook for the modules of the SDK v1: they are created from a table, and their names resolve on first use.

`from azureml.core import Run` in a training script costs as much as `from runyard import Run`.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

from runyard import __version__
from runyard.errors import RunyardException
from runyard.sdk.azureml.names import LOCATIONS, MODULES

TYPE_CHECKING = False  # importing typing takes longer than importing this module
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

VERSION = f"1.61.0+runyard.{__version__}"  # version of the SDK with these signatures, and of Runyard
_index: dict[str, tuple[str, str]] = {}


def install() -> _Finder:
    """Install the import hook for `azureml`."""
    finder = next((finder for finder in sys.meta_path if isinstance(finder, _Finder)), None)
    if finder is None:
        finder = _Finder()
        sys.meta_path.insert(0, finder)
    if "RUNYARD_RUN_ID" not in os.environ:  # in a run, the error is read from the last line of the traceback
        RunyardException.format_as_v1 = True
    return finder


def check_no_real_sdk() -> None:
    """Raise ImportError if azureml-core is installed: half of a notebook would run here and half in the cloud."""
    for folder in dict.fromkeys(sys.path):
        if os.path.isfile(os.path.join(folder, "azureml", "core", "__init__.py")):  # noqa: PTH113, PTH118
            raise ImportError(
                f"azureml-core, the real SDK, is installed in {folder}, and runyard-azureml too: "
                "`import azureml` cannot load both. "
                "Keep one of them: pip uninstall azureml-core, or pip uninstall runyard-azureml"
            )


def runyard_name(name: str) -> tuple[str, str] | None:
    """Return module and name in Runyard: ``("runyard.errors", "RunyardException")`` for AzureMLException."""
    if not _index:
        for module, names in LOCATIONS.items():
            for entry in names.split():
                v1_name, _, own_name = entry.partition("=")
                _index[v1_name] = (module, own_name or v1_name)
    return _index.get(name)


class _Finder:
    """Finds `azureml.…` in the table; the error for other names of the SDK explains why they are missing."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != "azureml" and not name.startswith("azureml."):
            return None
        if name in MODULES:
            from importlib.machinery import ModuleSpec

            # all are packages: for a missing name in a plain module, Python would raise its own error
            return ModuleSpec(name, _Loader(), origin="runyard.sdk.azureml.names", is_package=True)  # type: ignore[arg-type]
        parent, _, last = name.rpartition(".")
        if last in MODULES.get(parent, "").split():
            return None  # a class, imported as a module: Python raises its own error
        from runyard.sdk.azureml.refused import find_class, refusal

        if find_class(last) and parent in MODULES:
            # `from azureml.core import Pipeline`: Python would replace a ModuleNotFoundError by its own error, without
            # the reason
            raise ImportError(f"cannot import name {last!r} from {parent!r}: {refusal(name)}", name=parent)
        raise ModuleNotFoundError(f"No module named {name!r}: {refusal(name)}", name=name)


class _Loader:
    def create_module(self, spec: Any) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        fill(module)
        if module.__name__ == "azureml.core":
            _load_urllib_on_use()


def fill(module: ModuleType) -> None:
    """Give a module the names in the table, each resolved on first use."""
    name = module.__name__
    names = MODULES[name].split()
    submodules = [other.rpartition(".")[2] for other in MODULES if other.rpartition(".")[0] == name]

    def resolve(attribute: str) -> Any:
        target = runyard_name(attribute) if attribute in names else None
        if target is not None:
            value = getattr(import_module(target[0]), target[1])
        elif attribute in submodules:
            value = import_module(f"{name}.{attribute}")
        else:
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}{_missing_reason(name, attribute)}")
        setattr(module, attribute, value)
        return value

    vars(module).update(
        __all__=names,
        __dir__=lambda: sorted({*vars(module), *names, *submodules}),
        __doc__=f"{name} of the SDK v1, provided by Runyard.",
        __getattr__=resolve,
    )


def _load_urllib_on_use() -> None:
    """Make `import urllib; urllib.request` work: the real SDK imported these modules, and notebooks rely on it."""
    import urllib

    modules = ("error", "parse", "request", "response")

    def resolve(attribute: str) -> Any:
        if attribute in modules:
            return import_module(f"urllib.{attribute}")
        raise AttributeError(f"module 'urllib' has no attribute {attribute!r}")

    vars(urllib).setdefault("__getattr__", resolve)


def _missing_reason(module: str, name: str) -> str:
    if not name[:1].isupper():  # Python reads `__path__` and the like: load nothing for that
        return ""
    from runyard.sdk.azureml.refused import find_class, refusal

    return f": {refusal(f'{module}.{name}')}" if find_class(name) else ""
