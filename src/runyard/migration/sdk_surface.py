"""The names of the SDK v1 that are here: what `import azureml…` finds, what it takes, what comes back.

Read from the classes themselves, so that what is promised about a script is what the script will meet.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from importlib import import_module
from types import ModuleType
from typing import Any

from runyard.sdk.azureml.module_finder import runyard_name
from runyard.sdk.azureml.names import MODULES

ANY = "?"  # what is given by something that says of itself that it gives anything
_ANY_KEYWORD = "**"
_REFUSED = "switches"  # how estimators call the keywords that they look through, to refuse them with better words


@dataclass(frozen=True)
class Callable:
    title: str
    takes: tuple[str, ...] | None = None  # names of parameters; None: not to be called, or nothing is known
    gives: str = ""  # a class of ours, if it is one

    def refuses(self, keyword: str) -> bool:
        return self.takes is not None and keyword not in self.takes and _ANY_KEYWORD not in self.takes


@dataclass(frozen=True)
class Kind:
    """A class."""

    name: str
    bases: tuple[str, ...]
    made: Callable
    members: dict[str, Callable]
    answers_to_all: bool = False  # it makes up attributes as they are asked for


@dataclass
class Surface:
    modules: dict[str, dict[str, str]] = field(default_factory=dict)  # module -> name -> key in one of the others
    kinds: dict[str, Kind] = field(default_factory=dict)
    functions: dict[str, Callable] = field(default_factory=dict)

    def has_module(self, name: str) -> bool:
        return name in self.modules or any(module.startswith(f"{name}.") for module in self.modules)

    def members_of(self, name: str) -> dict[str, Callable]:
        """Of instances of a class. `Experiment.submit` gives a Run, and for a sweep one that can do more: what a
        subclass has may be asked for."""
        found: dict[str, Callable] = {}
        for kind in self._below(name):
            found.update(kind.members)
        return {**found, **self.kinds[name].members}

    def callables(self, name: str, member: str) -> list[Callable]:
        """All that may be called by that name: a ComputeTarget that is an AmlCompute takes more."""
        kinds = [self.kinds[name], *self._below(name)]
        return [kind.members[member] for kind in kinds if member in kind.members]

    def _below(self, name: str) -> Iterator[Kind]:
        return (kind for kind in self.kinds.values() if name in kind.bases)


@lru_cache(maxsize=1)
def surface() -> Surface:
    found, objects = Surface(), dict[str, Any]()
    for module, names in MODULES.items():
        found.modules[module] = {}
        for name in names.split():
            home = runyard_name(name)
            if home is not None:
                value = getattr(import_module(home[0]), home[1])
                key = value.__name__ if inspect.isclass(value) or inspect.isfunction(value) else name
                objects[key] = value
                found.modules[module][name] = key
    _add_what_they_give(objects)
    for key, value in objects.items():
        if inspect.isclass(value):
            found.kinds[key] = _kind(value, objects)
        elif callable(value):
            found.functions[key] = _callable(key, value, objects)
    return found


def _add_what_they_give(objects: dict[str, Any]) -> None:
    """Classes that no script imports, and that it receives: those of Runyard which ours are made of or give."""
    for value in list(objects.values()):
        module = inspect.getmodule(value)
        if inspect.isclass(value) and module is not None:
            for name, other in vars(module).items():
                if inspect.isclass(other) and other.__module__.startswith("runyard.sdk") and not name.startswith("_"):
                    objects.setdefault(other.__name__, other)


def _kind(kind: type[Any], objects: dict[str, Any]) -> Kind:
    members = {}
    for name in dir(kind):
        told = inspect.getattr_static(kind, name)
        if isinstance(told, property):
            members[name] = Callable(f"{kind.__name__}.{name}", None, _given(told.fget, objects))
        elif callable(getattr(kind, name, None)):
            members[name] = _callable(f"{kind.__name__}.{name}", getattr(kind, name), objects, drop=_is_bound(told))
        else:
            members[name] = Callable(f"{kind.__name__}.{name}")
    for ancestor in kind.__mro__:
        for name in _set_on_instances(ancestor):
            members.setdefault(name, Callable(f"{kind.__name__}.{name}"))
    bases = tuple(base.__name__ for base in kind.__mro__[1:])
    made = _callable(kind.__name__, kind, objects)
    if any("__new__" in vars(each) for each in kind.__mro__[:-1]):  # `Datastore(ws, name)` is never a Datastore
        made = replace(made, gives=_given(kind.__new__, objects) or ANY)
    return Kind(kind.__name__, bases, made, members, hasattr(kind, "__getattr__"))


def _is_bound(told: Any) -> bool:
    """Whether the first parameter is the object itself, which no caller names."""
    return inspect.isfunction(told)


def _callable(title: str, value: Any, objects: dict[str, Any], *, drop: bool = False) -> Callable:
    try:
        parameters = list(inspect.signature(value).parameters.values())[1 if drop else 0 :]
    except (TypeError, ValueError):
        return Callable(title)
    takes = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    takes += [_ANY_KEYWORD] if any(p.kind is p.VAR_KEYWORD and p.name != _REFUSED for p in parameters) else []
    return Callable(title, tuple(takes), _given(value, objects))


def _given(function: Any, objects: dict[str, Any]) -> str:
    annotation = getattr(function, "__annotations__", {}).get("return", "")
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    one_of = re.sub(r"Optional\[(.*)\]|['\"]", r"\1", text).split(" | ")  # `Run | OfflineRun` can do what a Run can
    return next((name for name in one_of if inspect.isclass(objects.get(name))), "")


def _set_on_instances(kind: type[Any]) -> set[str]:
    """What methods set on `self`, and what is declared: `dir` of the class knows none of it."""
    found = set(getattr(kind, "__annotations__", {}))
    module = inspect.getmodule(kind)
    if module is not None and kind.__module__.startswith("runyard"):
        found |= _set_by_classes_of(module).get(kind.__name__, set())
    return found


@cache
def _set_by_classes_of(module: ModuleType) -> dict[str, set[str]]:
    classes = [node for node in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(node, ast.ClassDef)]
    return {
        kind.name: {
            node.attr
            for node in ast.walk(kind)
            if isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Name)
            and node.value.id == "self"
        }
        for kind in classes
    }
