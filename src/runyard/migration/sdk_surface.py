"""The SDK v1 as Runyard provides it: modules, classes, parameters and return types.

Read from the classes themselves by introspection, so that it always matches the installed version.
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

ANY = "?"  # return type of a function that is annotated with Any
_ANY_KEYWORD = "**"
_REJECTED_KEYWORDS = "switches"  # **switches of estimators is not arbitrary: unknown keywords raise a specific error


@dataclass(frozen=True)
class Callable:
    title: str
    parameters: tuple[str, ...] | None = None  # None if it is not callable, or unknown
    returns: str = ""  # name of the class, if it is one of Runyard

    def rejects(self, keyword: str) -> bool:
        return self.parameters is not None and keyword not in self.parameters and _ANY_KEYWORD not in self.parameters


@dataclass(frozen=True)
class ClassInfo:
    """A class of the SDK."""

    name: str
    bases: tuple[str, ...]
    constructor: Callable
    members: dict[str, Callable]
    has_dynamic_attributes: bool = False  # it has __getattr__


@dataclass
class Surface:
    modules: dict[str, dict[str, str]] = field(default_factory=dict)  # module -> name -> key of a class or function
    classes: dict[str, ClassInfo] = field(default_factory=dict)
    functions: dict[str, Callable] = field(default_factory=dict)

    def has_module(self, name: str) -> bool:
        return name in self.modules or any(module.startswith(f"{name}.") for module in self.modules)

    def members_of(self, name: str) -> dict[str, Callable]:
        """Return the members of a class and of its subclasses: `Experiment.submit` may return a subclass of Run."""
        members: dict[str, Callable] = {}
        for subclass in self._subclasses(name):
            members.update(subclass.members)
        return {**members, **self.classes[name].members}

    def callables(self, name: str, member: str) -> list[Callable]:
        """Return the possible signatures of a member, in the class and its subclasses."""
        classes = [self.classes[name], *self._subclasses(name)]
        return [cls.members[member] for cls in classes if member in cls.members]

    def _subclasses(self, name: str) -> Iterator[ClassInfo]:
        return (cls for cls in self.classes.values() if name in cls.bases)


@lru_cache(maxsize=1)
def surface() -> Surface:
    """Build the surface by importing every name of the SDK."""
    result, objects = Surface(), dict[str, Any]()
    for module, names in MODULES.items():
        result.modules[module] = {}
        for name in names.split():
            home = runyard_name(name)
            if home is not None:
                value = getattr(import_module(home[0]), home[1])
                key = value.__name__ if inspect.isclass(value) or inspect.isfunction(value) else name
                objects[key] = value
                result.modules[module][name] = key
    _add_returned_classes(objects)
    for key, value in objects.items():
        if inspect.isclass(value):
            result.classes[key] = _class_info(value, objects)
        elif callable(value):
            result.functions[key] = _callable(key, value, objects)
    return result


def _add_returned_classes(objects: dict[str, Any]) -> None:
    """Add classes that scripts do not import but receive as return values: all SDK classes in the same modules."""
    for value in list(objects.values()):
        module = inspect.getmodule(value)
        if inspect.isclass(value) and module is not None:
            for name, other in vars(module).items():
                if inspect.isclass(other) and other.__module__.startswith("runyard.sdk") and not name.startswith("_"):
                    objects.setdefault(other.__name__, other)


def _class_info(cls: type[Any], objects: dict[str, Any]) -> ClassInfo:
    members = {}
    for name in dir(cls):
        static = inspect.getattr_static(cls, name)
        title = f"{cls.__name__}.{name}"
        if isinstance(static, property):
            members[name] = Callable(title, None, _return_class(static.fget, objects))
        elif callable(getattr(cls, name, None)):
            members[name] = _callable(title, getattr(cls, name), objects, has_self=inspect.isfunction(static))
        else:
            members[name] = Callable(title)
    for ancestor in cls.__mro__:
        for name in _instance_attributes(ancestor):
            members.setdefault(name, Callable(f"{cls.__name__}.{name}"))
    bases = tuple(base.__name__ for base in cls.__mro__[1:])
    constructor = _callable(cls.__name__, cls, objects)
    if any("__new__" in vars(each) for each in cls.__mro__[:-1]):  # `Datastore(ws, name)` never returns a Datastore
        constructor = replace(constructor, returns=_return_class(cls.__new__, objects) or ANY)
    return ClassInfo(cls.__name__, bases, constructor, members, hasattr(cls, "__getattr__"))


def _callable(title: str, value: Any, objects: dict[str, Any], *, has_self: bool = False) -> Callable:
    try:
        parameters = list(inspect.signature(value).parameters.values())[1 if has_self else 0 :]
    except (TypeError, ValueError):
        return Callable(title)
    names = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if any(p.kind is p.VAR_KEYWORD and p.name != _REJECTED_KEYWORDS for p in parameters):
        names.append(_ANY_KEYWORD)
    return Callable(title, tuple(names), _return_class(value, objects))


def _return_class(function: Any, objects: dict[str, Any]) -> str:
    annotation = getattr(function, "__annotations__", {}).get("return", "")
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    alternatives = re.sub(r"Optional\[(.*)\]|['\"]", r"\1", text).split(" | ")  # of `Run | OfflineRun` the first
    return next((name for name in alternatives if inspect.isclass(objects.get(name))), "")


def _instance_attributes(cls: type[Any]) -> set[str]:
    """Return annotated attributes and those that methods set on `self`; `dir` of the class does not list them."""
    attributes = set(getattr(cls, "__annotations__", {}))
    module = inspect.getmodule(cls)
    if module is not None and cls.__module__.startswith("runyard"):
        attributes |= _assigned_attributes(module).get(cls.__name__, set())
    return attributes


@cache
def _assigned_attributes(module: ModuleType) -> dict[str, set[str]]:
    classes = [node for node in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(node, ast.ClassDef)]
    return {
        cls.name: {
            node.attr
            for node in ast.walk(cls)
            if isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Name)
            and node.value.id == "self"
        }
        for cls in classes
    }
