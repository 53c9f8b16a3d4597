"""Checks names and keywords of the SDK: supported, a service of Azure, or unknown."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from runyard.migration import cloud_services
from runyard.migration.names import Class, Function, Instance, Module, Names, Value, is_sdk
from runyard.migration.report import ERROR, Finding
from runyard.migration.sdk_surface import Callable, Surface
from runyard.sdk.core.validation import did_you_mean

_GUIDE = "see the guide on moving from the retired SDK"

# keywords of releases of 2018 and 2019 that later releases removed
_REMOVED_KEYWORDS = {
    "Model.register(root_dir=…)": "removed from the SDK in 2019: omit it, model_path is sufficient",
    "AciWebservice.deploy_configuration(app_insights_enabled=…)": "renamed in 2018: enable_app_insights",
}


class SdkRules:
    """Checks the use of the SDK; collects the supported names that a file uses."""

    def __init__(self, surface: Surface, names: Names) -> None:
        self._surface = surface
        self._names = names
        self.used: set[str] = set()  # supported names that occur in the file

    def findings(self, tree: ast.AST) -> Iterator[Finding]:
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield from self._module(alias.name, node.lineno)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                yield from self._imported(node)
            elif isinstance(node, ast.Attribute):
                yield from self._attribute(node)
            elif isinstance(node, ast.Call):
                yield from self._keywords(node)

    def _module(self, path: str, line: int) -> Iterator[Finding]:
        if is_sdk(path) and self._surface.has_module(path):
            self.used.add(path)
            return
        service = cloud_services.find_service(path)
        if service is not None:
            yield _azure(path, service, line)
        elif is_sdk(path):
            yield _unknown(path, "is not a module of Runyard", _GUIDE, line)

    def _imported(self, node: ast.ImportFrom) -> Iterator[Finding]:
        path = node.module or ""
        if not is_sdk(path) or not self._surface.has_module(path):
            yield from self._module(path, node.lineno)
            return
        names = self._surface.modules.get(path, {})
        for alias in node.names:
            full = f"{path}.{alias.name}"
            if alias.name == "*" or alias.name in names or self._surface.has_module(full):
                self.used.add(path if alias.name == "*" else full)
                if alias.name in cloud_services.CLASSES:  # a stub that only allows the import
                    yield _azure(full, cloud_services.CLASSES[alias.name], node.lineno)
                continue
            service = cloud_services.CLASSES.get(alias.name) or cloud_services.find_service(full)
            if service is not None:
                yield _azure(full, service, node.lineno)
            else:
                remedy = _replacement(alias.name) or did_you_mean(alias.name, names).strip() or _GUIDE
                yield _unknown(full, f"is not in {path}", remedy, node.lineno)

    def _attribute(self, node: ast.Attribute) -> Iterator[Finding]:
        owners = self._names.values(node.value)
        findings = [self._missing(owner, node) for owner in owners]
        if findings and all(findings):  # a variable with several possible values: report what is wrong for all of them
            yield from [finding for finding in findings if finding][:1]

    def _missing(self, owner: Value, node: ast.Attribute) -> Finding | None:
        if isinstance(owner, Module):
            full = f"{owner.path}.{node.attr}"
            if node.attr in self._surface.modules.get(owner.path, {}) or self._surface.has_module(full):
                self.used.add(full)
                return None
            service = cloud_services.CLASSES.get(node.attr) or cloud_services.find_service(full)
            if node.attr.startswith("__"):
                return None
            if service is not None:
                return _azure(full, service, node.lineno)
            return _unknown(full, "is not available", _replacement(node.attr) or _GUIDE, node.lineno)
        if not isinstance(owner, (Class, Instance)) or self._surface.classes[owner.name].has_dynamic_attributes:
            return None
        members = self._surface.members_of(owner.name)
        title = f"{owner.name}.{node.attr}"
        if node.attr in members:
            self.used.add(title)
            return None
        strict = "Section" in self._surface.classes[owner.name].bases
        if isinstance(node.ctx, ast.Store) and not strict:
            return None
        if node.attr.startswith("_"):
            return _unknown(title, "is a private name of the SDK", "use a public name", node.lineno)
        suggestion = did_you_mean(node.attr, [name for name in members if not name.startswith("_")])
        return _unknown(title, f"is not a member of {owner.name}", suggestion.strip() or _GUIDE, node.lineno)

    def _keywords(self, node: ast.Call) -> Iterator[Finding]:
        candidates = [each for value in self._names.values(node.func) for each in self._callables(value)]
        if not candidates:
            return
        title, parameters = candidates[0].title, candidates[0].parameters or ()
        for keyword in node.keywords:
            name = keyword.arg
            if name and not name.startswith("_") and all(each.rejects(name) for each in candidates):
                code = f"{title}({name}=…)"
                listing = ", ".join(each for each in parameters if not each.startswith("_")) or "none"
                suggestion = did_you_mean(name, parameters).strip()
                remedy = _REMOVED_KEYWORDS.get(code) or suggestion or f"its parameters: {listing}"
                message = f"{title} has no parameter {name!r}"
                yield Finding("unknown-keyword", ERROR, code, message, remedy, keyword.value.lineno)

    def _callables(self, value: Value) -> list[Callable]:
        """Return the signatures that a value may have; an unknown value accepts everything."""
        if isinstance(value, Class):
            return [self._surface.classes[value.name].constructor]
        if isinstance(value, Function):
            owner, _, member = value.title.partition(".")
            return self._surface.callables(owner, member) if member else [self._surface.functions[owner]]
        return [Callable("")]


def _replacement(name: str) -> str:
    return cloud_services.RENAMED[name].alternative if name in cloud_services.RENAMED else ""


def _azure(name: str, service: cloud_services.Service, line: int) -> Finding:
    return Finding("azure-only", ERROR, name, f"{name}: {service.description}", service.alternative, line)


def _unknown(name: str, reason: str, remedy: str, line: int) -> Finding:
    return Finding("unknown-name", ERROR, name, f"{name} {reason}", remedy, line)
