"""Every name, member and parameter of the SDK v1 that its notebooks could meet is here, as the file beside tells.

`sdk_v1_surface.json` holds, for each class, what its constructor and members take; `...` stands for a default that is
no plain value.
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
GIVEN = object()  # a default that the facts do not tell


@pytest.mark.parametrize("module", FACTS["modules"])
def test_a_module_has_its_names(module: str) -> None:
    found = importlib.import_module(module)
    assert [name for name in FACTS["modules"][module] if not hasattr(found, name)] == []


@pytest.mark.parametrize("path", FACTS["objects"])
def test_a_class_takes_what_it_took_and_has_its_members(path: str) -> None:
    facts, found = FACTS["objects"][path], resolve(path)
    problems = differences(found, facts["takes"]) if "takes" in facts else []
    for name, told in facts.get("members", {}).items():
        kind, _, takes = told.partition("(")
        problems += [f"{name}: {problem}" for problem in member_problems(found, name, kind, takes.removesuffix(")"))]
    assert problems == []


def test_the_facts_are_all_there() -> None:
    members = sum(len(facts.get("members", {})) for facts in FACTS["objects"].values())
    assert (len(FACTS["modules"]), sum(map(len, FACTS["modules"].values()))) == (30, 64)
    assert (len(FACTS["objects"]), members) == (60, 734)


def resolve(path: str) -> Any:
    module, _, name = path.removeprefix("legacy:").rpartition(".")
    return getattr(importlib.import_module(module), name)


def member_problems(owner: Any, name: str, kind: str, takes: str) -> list[str]:
    plain = next((vars(base)[name] for base in owner.__mro__ if name in vars(base)), None)
    if plain is None:
        return [] if kind not in CALLS and name in set_on_instances(owner) else ["is not there"]
    if kind == "enum_member":
        return [] if issubclass(owner, enum.Enum) and isinstance(plain, owner) else ["is no value of the enum"]
    is_call = callable(plain) or isinstance(plain, (staticmethod, classmethod))
    if is_call and isinstance(plain, type):
        return []  # a class in the place of a factory or of a value
    if is_call != (kind in CALLS):
        return [f"is {'' if is_call else 'no '}method"]
    if kind not in CALLS:
        return []
    if kind != "method" and not isinstance(plain, (staticmethod, classmethod)):
        return ["needs an object, and did not"]
    # without the object that it is a method of
    function = plain.__func__ if isinstance(plain, (staticmethod, classmethod)) else plain
    return differences(function, takes, skip=0 if isinstance(plain, staticmethod) else 1)


def differences(found: Any, takes: str, skip: int = 0) -> list[str]:
    """What a caller who writes for the SDK v1 would stumble over: a name, a place, a default, an argument too many."""
    mine = list(inspect.signature(found).parameters.values())[skip:]
    by_name = {parameter.name: parameter for parameter in mine if parameter.kind.name.startswith(("POS", "KEY"))}
    places = [parameter.name for parameter in mine if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    takes_any_place = any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in mine)
    problems, theirs = [], parameters(takes)
    for place, (name, default, by_place) in enumerate(theirs):
        if name.startswith("_"):
            continue
        parameter = by_name.get(name)
        if parameter is None:
            problems.append(f"takes no {name}")
        elif default is not None and parameter.default is inspect.Parameter.empty:
            problems.append(f"{name} must be given")
        elif default not in (None, GIVEN) and (parameter.default, type(parameter.default)) != default:
            if not (isinstance(parameter.default, str) and parameter.default == default[0]):
                problems.append(f"{name} is {parameter.default!r} by default, and was {default[0]!r}")
        elif by_place and not takes_any_place and places[place : place + 1] != [name]:
            problems.append(f"{name} is not in place {place}")
    known = {name for name, _, _ in theirs}
    problems += [
        f"demands {name}"
        for name, parameter in by_name.items()
        if parameter.default is inspect.Parameter.empty and name not in known
    ]
    return problems


def parameters(takes: str) -> list[tuple[str, Any, bool]]:
    """``a, b=1, *, c=...``: each name, its default (as value and type; None: has none), and whether by place."""
    node = ast.parse(f"def f({takes}): pass").body[0]
    assert isinstance(node, ast.FunctionDef)
    placed = node.args.args
    defaults = [None] * (len(placed) - len(node.args.defaults)) + [told(one) for one in node.args.defaults]
    found = [(argument.arg, default, True) for argument, default in zip(placed, defaults, strict=True)]
    for argument, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
        found.append((argument.arg, None if value is None else told(value), False))
    return found


def told(node: ast.expr) -> Any:
    value = ast.literal_eval(node)
    return GIVEN if value is ... else (value, type(value))


def set_on_instances(owner: Any) -> set[str]:
    """Names that the class annotates or sets on itself: `self.name = …`."""
    found: set[str] = set()
    for base in owner.__mro__:
        if base.__module__ == "builtins":
            continue
        found |= set(vars(base).get("__annotations__", ()))
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(base)))):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                found |= {node.attr} if isinstance(node.value, ast.Name) and node.value.id == "self" else set()
    return found
