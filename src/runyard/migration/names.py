"""Resolves the names of a file to modules, classes and instances of the SDK, without running it.

All cells of a notebook share their names. A name with several bindings may have any of their values. A name with a
binding that cannot be resolved is unknown and never reported: a false alarm is worse than a missed problem.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Union

from runyard.migration.sdk_surface import Callable, Surface


@dataclass(frozen=True)
class Module:
    """A module of the SDK."""

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
    returns: str


@dataclass(frozen=True)
class ExternalName:
    """A name of another package: tensorflow.train."""

    path: str


@dataclass(frozen=True)
class Unknown:
    pass


UNKNOWN = Unknown()
Value = Union[Module, Class, Instance, Function, ExternalName, Unknown]
_Binding = Union[Value, ast.expr]
_RESULT_DEPENDS_ON_ARGUMENT = {"Experiment.submit", "Run.submit_child"}


class Names(ast.NodeVisitor):
    """The bindings of all names in some syntax trees."""

    def __init__(self, surface: Surface, trees: Iterable[ast.AST]) -> None:
        self._surface = surface
        self._bindings: dict[str, list[_Binding]] = {}
        self._resolved: dict[str, frozenset[Value]] = {}
        self._resolving: dict[str, set[Value]] = {}  # partial results, to stop at recursive bindings
        for tree in trees:
            self.visit(tree)

    def values(self, node: ast.expr) -> frozenset[Value]:
        """Return the possible values of an expression; empty if its names are not bound in the file."""
        if isinstance(node, ast.Name):
            return self._resolve(node.id)
        if isinstance(node, ast.Attribute):
            return frozenset(self.member(value, node.attr) for value in self.values(node.value))
        if isinstance(node, ast.Call):
            return frozenset(self._result(value, node) for value in self.values(node.func))
        return frozenset((UNKNOWN,))

    def member(self, owner: Value, name: str) -> Value:
        if isinstance(owner, ExternalName):
            return ExternalName(f"{owner.path}.{name}")
        if isinstance(owner, Module):
            return self._module_member(owner.path, name)
        if isinstance(owner, (Class, Instance)):
            member = self._surface.members_of(owner.name).get(name)
            return _member_value(member, owner) if member else UNKNOWN
        return UNKNOWN

    def _resolve(self, name: str) -> frozenset[Value]:
        if name not in self._resolved:
            if name in self._resolving:
                return frozenset(self._resolving[name])  # `tf = tf.compat.v1`: the earlier bindings
            values = self._resolving[name] = set()
            for binding in self._bindings.get(name, []):
                values |= self.values(binding) if isinstance(binding, ast.expr) else {binding}
            self._resolved[name] = frozenset(self._resolving.pop(name))
        return self._resolved[name]

    def _module_member(self, path: str, name: str) -> Value:
        surface = self._surface
        key = surface.modules.get(path, {}).get(name)
        if key is None:
            return Module(f"{path}.{name}") if surface.has_module(f"{path}.{name}") else UNKNOWN
        if key in surface.classes:
            return Class(key)
        return Function(key, surface.functions[key].returns) if key in surface.functions else UNKNOWN

    def _result(self, value: Value, node: ast.Call) -> Value:
        if isinstance(value, Class):
            returns = self._surface.classes[value.name].constructor.returns or value.name
            return Instance(returns) if returns in self._surface.classes else UNKNOWN
        if isinstance(value, ExternalName):
            return ExternalName(f"{value.path}()")
        if not isinstance(value, Function) or not value.returns:
            return UNKNOWN
        if value.title in _RESULT_DEPENDS_ON_ARGUMENT and not self._submits_sdk_object(node):
            return UNKNOWN
        return Instance(value.returns)

    def _submits_sdk_object(self, node: ast.Call) -> bool:
        """True if the submitted object is of an SDK class; otherwise the type of the result is unknown."""
        arguments = [*node.args[:1], *(keyword.value for keyword in node.keywords if keyword.arg == "config")]
        values = [value for argument in arguments for value in self.values(argument)]
        return bool(values) and all(isinstance(value, Instance) for value in values)

    def _bind(self, name: str, binding: _Binding) -> None:
        self._bindings.setdefault(name, []).append(binding)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            path = alias.name if alias.asname else alias.name.partition(".")[0]
            self._bind(alias.asname or path, Module(path) if is_sdk(path) else ExternalName(path))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        path = node.module or ""
        for alias in node.names:
            if alias.name == "*":
                for name in self._surface.modules.get(path, {}):
                    self._bind(name, self._module_member(path, name))
            elif node.level or not path:
                self._bind(alias.asname or alias.name, UNKNOWN)
            elif is_sdk(path):
                self._bind(alias.asname or alias.name, self._module_member(path, alias.name))
            else:
                self._bind(alias.asname or alias.name, ExternalName(f"{path}.{alias.name}"))

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
            self._bind_target(node.optional_vars, node.context_expr)  # context managers of the SDK return themselves
        self.visit(node.context_expr)

    def _bind_target(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self._bind(target.id, value)
        else:
            self.visit(target)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):  # in a loop, a tuple, a comprehension or `+=`
            self._bind(node.id, UNKNOWN)

    def visit_arg(self, node: ast.arg) -> None:
        self._bind(node.arg, UNKNOWN)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._bind(node.name, UNKNOWN)
        self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._bind(node.name, UNKNOWN)
        self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._bind(node.name, UNKNOWN)
        self.generic_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self._bind(node.name, UNKNOWN)
        self.generic_visit(node)


def is_sdk(path: str) -> bool:
    return path == "azureml" or path.startswith("azureml.")


def _member_value(member: Callable, owner: Class | Instance) -> Value:
    if member.parameters is not None:
        return Function(member.title, member.returns)
    return Instance(member.returns) if member.returns and isinstance(owner, Instance) else UNKNOWN
