"""Compares the names, members and parameters of the SDK v1 with those recorded in `sdk_v1_surface.json`.

For each class it has the parameters of the constructor and the members; `...` stands for a default that is not a plain
value.
"""

from __future__ import annotations

import ast
import enum
import importlib
import inspect
import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

FACTS = json.loads((Path(__file__).parent / "sdk_v1_surface.json").read_text(encoding="utf-8"))
CALLS = ("method", "staticmethod", "classmethod")
UNKNOWN = object()  # a default that was not recorded


@pytest.mark.parametrize("module", FACTS["modules"])
def test_a_module_has_its_names(module: str) -> None:
    imported = importlib.import_module(module)
    assert [name for name in FACTS["modules"][module] if not hasattr(imported, name)] == []


@pytest.mark.parametrize("path", FACTS["objects"])
def test_a_class_has_its_parameters_and_members(path: str) -> None:
    facts, owner = FACTS["objects"][path], resolve(path)
    problems = differences(owner, facts["takes"]) if "takes" in facts else []
    for name, recorded in facts.get("members", {}).items():
        kind, _, takes = recorded.partition("(")
        problems += [f"{name}: {problem}" for problem in member_problems(owner, name, kind, takes.removesuffix(")"))]
    assert problems == []


def test_the_recorded_surface_is_complete() -> None:
    members = sum(len(facts.get("members", {})) for facts in FACTS["objects"].values())
    assert (len(FACTS["modules"]), sum(map(len, FACTS["modules"].values()))) == (30, 64)
    assert (len(FACTS["objects"]), members) == (60, 734)


def resolve(path: str) -> Any:
    module, _, name = path.removeprefix("legacy:").rpartition(".")
    return getattr(importlib.import_module(module), name)


def member_problems(owner: Any, name: str, kind: str, takes: str) -> list[str]:
    plain = next((vars(base)[name] for base in owner.__mro__ if name in vars(base)), None)
    if plain is None:
        return [] if kind not in CALLS and name in set_on_instances(owner) else ["does not exist"]
    if kind == "enum_member":
        return [] if issubclass(owner, enum.Enum) and isinstance(plain, owner) else ["is not a value of the enum"]
    is_call = callable(plain) or isinstance(plain, (staticmethod, classmethod))
    if is_call and isinstance(plain, type):
        return []  # a class in the place of a factory or of a value
    if is_call != (kind in CALLS):
        return [f"is {'' if is_call else 'no '}method"]
    if kind not in CALLS:
        return []
    if kind != "method" and not isinstance(plain, (staticmethod, classmethod)):
        return ["needs an instance, unlike before"]
    # without the object that it is a method of
    function = plain.__func__ if isinstance(plain, (staticmethod, classmethod)) else plain
    return differences(function, takes, skip=0 if isinstance(plain, staticmethod) else 1)


def differences(function: Any, takes: str, skip: int = 0) -> list[str]:
    """Return the differences that break a caller: a name, a position, a default, or an additional required argument."""
    mine = list(inspect.signature(function).parameters.values())[skip:]
    by_name = {parameter.name: parameter for parameter in mine if parameter.kind.name.startswith(("POS", "KEY"))}
    places = [parameter.name for parameter in mine if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    takes_any_place = any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in mine)
    problems, theirs = [], parameters(takes)
    for position, (name, default, is_positional) in enumerate(theirs):
        if name.startswith("_"):
            continue
        parameter = by_name.get(name)
        if parameter is None:
            problems.append(f"takes no {name}")
        elif default is not None and parameter.default is inspect.Parameter.empty:
            problems.append(f"{name} must be given")
        elif default not in (None, UNKNOWN) and (parameter.default, type(parameter.default)) != default:
            if not (isinstance(parameter.default, str) and parameter.default == default[0]):
                problems.append(f"{name} is {parameter.default!r} by default, and was {default[0]!r}")
        elif is_positional and not takes_any_place and places[position : position + 1] != [name]:
            problems.append(f"{name} is not at position {position}")
    recorded_names = {name for name, _, _ in theirs}
    problems += [
        f"demands {name}"
        for name, parameter in by_name.items()
        if parameter.default is inspect.Parameter.empty and name not in recorded_names
    ]
    return problems


def parameters(takes: str) -> list[tuple[str, Any, bool]]:
    """``a, b=1, *, c=...``: each name, its default (as value and type; None: has none), and whether by place."""
    node = ast.parse(f"def f({takes}): pass").body[0]
    assert isinstance(node, ast.FunctionDef)
    positional = node.args.args
    defaults = [None] * (len(positional) - len(node.args.defaults)) + [_default(value) for value in node.args.defaults]
    result = [(argument.arg, default, True) for argument, default in zip(positional, defaults, strict=True)]
    for argument, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
        result.append((argument.arg, None if value is None else _default(value), False))
    return result


def _default(node: ast.expr) -> Any:
    value = ast.literal_eval(node)
    return UNKNOWN if value is ... else (value, type(value))


def set_on_instances(owner: Any) -> set[str]:
    """Names that the class annotates or sets on itself: `self.name = …`."""
    names: set[str] = set()
    for base in owner.__mro__:
        if base.__module__ == "builtins":
            continue
        names |= set(vars(base).get("__annotations__", ()))
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(base)))):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                names |= {node.attr} if isinstance(node.value, ast.Name) and node.value.id == "self" else set()
    return names
