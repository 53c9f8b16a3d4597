"""What the names of a file stand for, as far as that can be said without running it.

All cells of a notebook share their names. A name that is bound in several ways may be any of them, and one that is
bound in a way which is not understood may be anything: nothing is said about it, since a false alarm costs more than a
miss.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Union

from runyard.migration.sdk_surface import Callable, Surface


@dataclass(frozen=True)
class Module:
    """Of the SDK."""

    path: str


@dataclass(frozen=True)
class Class:
    name: str


@dataclass(frozen=True)
class Instance:
    name: str


@dataclass(frozen=True)
class Function:
    title: str
    gives: str


@dataclass(frozen=True)
class Foreign:
    """A name of another package: tensorflow.train."""

    path: str


@dataclass(frozen=True)
class Anything:
    pass


ANYTHING = Anything()
Value = Union[Module, Class, Instance, Function, Foreign, Anything]
_Bound = Union[Value, ast.expr]
_AS_THEIR_ARGUMENT = {"Experiment.submit", "Run.submit_child"}


class Names(ast.NodeVisitor):
    def __init__(self, surface: Surface, trees: Iterable[ast.AST]) -> None:
        self._surface = surface
        self._bound: dict[str, list[_Bound]] = {}
        self._known: dict[str, frozenset[Value]] = {}
        self._asked: dict[str, set[Value]] = {}  # those whose bindings are being looked at
        for tree in trees:
            self.visit(tree)

    def values(self, node: ast.expr) -> frozenset[Value]:
        """All that an expression may stand for; empty when its names are bound nowhere in the file."""
        if isinstance(node, ast.Name):
            return self._of_name(node.id)
        if isinstance(node, ast.Attribute):
            return frozenset(self.member(value, node.attr) for value in self.values(node.value))
        if isinstance(node, ast.Call):
            return frozenset(self._called(value, node) for value in self.values(node.func))
        return frozenset((ANYTHING,))

    def member(self, owner: Value, name: str) -> Value:
        if isinstance(owner, Foreign):
            return Foreign(f"{owner.path}.{name}")
        if isinstance(owner, Module):
            return self._of_module(owner.path, name)
        if isinstance(owner, (Class, Instance)):
            found = self._surface.members_of(owner.name).get(name)
            return _member(found, owner) if found else ANYTHING
        return ANYTHING

    def _of_name(self, name: str) -> frozenset[Value]:
        if name not in self._known:
            if name in self._asked:
                return frozenset(self._asked[name])  # `tf = tf.compat.v1`: of what it was before
            found = self._asked[name] = set()
            for bound in self._bound.get(name, []):
                found |= self.values(bound) if isinstance(bound, ast.expr) else {bound}
            self._known[name] = frozenset(self._asked.pop(name))
        return self._known[name]

    def _of_module(self, path: str, name: str) -> Value:
        surface = self._surface
        key = surface.modules.get(path, {}).get(name)
        if key is None:
            return Module(f"{path}.{name}") if surface.has_module(f"{path}.{name}") else ANYTHING
        if key in surface.kinds:
            return Class(key)
        return Function(key, surface.functions[key].gives) if key in surface.functions else ANYTHING

    def _called(self, value: Value, node: ast.Call) -> Value:
        if isinstance(value, Class):
            gives = self._surface.kinds[value.name].made.gives or value.name
            return Instance(gives) if gives in self._surface.kinds else ANYTHING
        if isinstance(value, Foreign):
            return Foreign(f"{value.path}()")
        if not isinstance(value, Function) or not value.gives:
            return ANYTHING
        if value.title in _AS_THEIR_ARGUMENT and not self._is_ours(node):
            return ANYTHING
        return Instance(value.gives)

    def _is_ours(self, node: ast.Call) -> bool:
        """Whether what is submitted is one of our classes: what comes back of another is another's as well."""
        given = [*node.args[:1], *(keyword.value for keyword in node.keywords if keyword.arg == "config")]
        values = [value for each in given for value in self.values(each)]
        return bool(values) and all(isinstance(value, Instance) for value in values)

    # how names are bound

    def _bind(self, name: str, what: _Bound) -> None:
        self._bound.setdefault(name, []).append(what)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            path = alias.name if alias.asname else alias.name.partition(".")[0]
            self._bind(alias.asname or path, Module(path) if is_sdk(path) else Foreign(path))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        path = node.module or ""
        for alias in node.names:
            if alias.name == "*":
                for name in self._surface.modules.get(path, {}):
                    self._bind(name, self._of_module(path, name))
            elif node.level or not path:
                self._bind(alias.asname or alias.name, ANYTHING)
            elif is_sdk(path):
                self._bind(alias.asname or alias.name, self._of_module(path, alias.name))
            else:
                self._bind(alias.asname or alias.name, Foreign(f"{path}.{alias.name}"))

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._bind_target(target, node.value)
        self.visit(node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._bind_target(node.target, node.value)
            self.visit(node.value)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self._bind_target(node.target, node.value)
        self.visit(node.value)

    def visit_withitem(self, node: ast.withitem) -> None:
        if node.optional_vars is not None:
            self._bind_target(node.optional_vars, node.context_expr)  # those of the SDK give themselves
        self.visit(node.context_expr)

    def _bind_target(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self._bind(target.id, value)
        else:
            self.visit(target)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):  # by a loop, a tuple, a comprehension, `+=`
            self._bind(node.id, ANYTHING)

    def visit_arg(self, node: ast.arg) -> None:
        self._bind(node.arg, ANYTHING)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._bind(node.name, ANYTHING)
        self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._bind(node.name, ANYTHING)
        self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._bind(node.name, ANYTHING)
        self.generic_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self._bind(node.name, ANYTHING)
        self.generic_visit(node)


def is_sdk(path: str) -> bool:
    return path == "azureml" or path.startswith("azureml.")


def _member(found: Callable, owner: Class | Instance) -> Value:
    if found.takes is not None:
        return Function(found.title, found.gives)
    return Instance(found.gives) if found.gives and isinstance(owner, Instance) else ANYTHING
