"""The modules of the SDK v1 as Python finds them: made from a table when they are imported, their names when used.

`from azureml.core import Run` in a training script costs what `from runyard import Run` does.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

from runyard import __version__
from runyard.errors import RunyardException
from runyard.sdk.azureml.names import HOMES, MODULES

TYPE_CHECKING = False  # typing itself takes longer to import than this module
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

VERSION = f"1.61.0+runyard.{__version__}"  # that of the SDK whose signatures these are, and ours
_homes: dict[str, tuple[str, str]] = {}


def answer() -> _Finder:
    """From now on `azureml` and everything below it is what the table says."""
    found = next((finder for finder in sys.meta_path if isinstance(finder, _Finder)), None)
    if found is None:
        found = _Finder()
        sys.meta_path.insert(0, found)
    if "RUNYARD_RUN_ID" not in os.environ:  # what a run failed of is read from the last line of its traceback
        RunyardException.shown_as_v1 = True
    return found


def refuse_beside_the_sdk() -> None:
    """Two answers to one name would be a mixture of both: half of a notebook here, half of it in the cloud."""
    for folder in dict.fromkeys(sys.path):
        if os.path.isfile(os.path.join(folder, "azureml", "core", "__init__.py")):  # noqa: PTH113, PTH118
            raise ImportError(
                f"azureml-core, the real SDK, is installed here ({folder}), and runyard-azureml too: "
                "`import azureml` cannot mean both. "
                "Keep one of them: pip uninstall azureml-core, or pip uninstall runyard-azureml"
            )


def home_of(name: str) -> tuple[str, str] | None:
    """The module of Runyard and the name in it: ``("runyard.errors", "RunyardException")`` for AzureMLException."""
    if not _homes:
        for module, names in HOMES.items():
            for word in names.split():
                here, _, there = word.partition("=")
                _homes[here] = (module, there or here)
    return _homes.get(name)


class _Finder:
    """Finds `azureml.…` in the table, and says of other names of the SDK why they are not there."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != "azureml" and not name.startswith("azureml."):
            return None
        if name in MODULES:
            from importlib.machinery import ModuleSpec

            # each a package: of a name that a plain module has not, Python says in its own words that it is not there
            return ModuleSpec(name, _Loader(), origin="runyard.sdk.azureml.names", is_package=True)  # type: ignore[arg-type]
        parent, _, last = name.rpartition(".")
        if last in MODULES.get(parent, "").split():
            return None  # a class, asked for as a module: Python says by itself that it is none
        from runyard.sdk.azureml.refused import of_class, why_not

        if of_class(last) and parent in MODULES:
            # `from azureml.core import Keyvault`: of a ModuleNotFoundError Python would say in its own words, without
            # the reason, that it cannot import the name
            raise ImportError(f"cannot import name {last!r} from {parent!r}: {why_not(name)}", name=parent)
        raise ModuleNotFoundError(f"No module named {name!r}: {why_not(name)}", name=name)


class _Loader:
    def create_module(self, spec: Any) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        fill(module)


def fill(module: ModuleType) -> None:
    """Makes a module hold the names that the table gives it, each resolved when it is first used."""
    name = module.__name__
    names = MODULES[name].split()
    below = [other.rpartition(".")[2] for other in MODULES if other.rpartition(".")[0] == name]

    def resolve(wanted: str) -> Any:
        home = home_of(wanted) if wanted in names else None
        if home is not None:
            value = getattr(import_module(home[0]), home[1])
        elif wanted in below:
            value = import_module(f"{name}.{wanted}")
        else:
            raise AttributeError(f"module {name!r} has no attribute {wanted!r}{_why_no_class(name, wanted)}")
        setattr(module, wanted, value)
        return value

    vars(module).update(
        __all__=names,
        __dir__=lambda: sorted({*vars(module), *names, *below}),
        __doc__=f"{name} of the SDK v1, answered by Runyard.",
        __getattr__=resolve,
    )


def _why_no_class(module: str, wanted: str) -> str:
    if not wanted[:1].isupper():  # Python itself asks modules for `__path__` and the like: nothing is loaded for that
        return ""
    from runyard.sdk.azureml.refused import of_class, why_not

    return f": {why_not(f'{module}.{wanted}')}" if of_class(wanted) else ""
