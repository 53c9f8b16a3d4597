"""Names and keywords of the SDK: which are here, which are services of Azure, which are nowhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from runyard.migration import cloud_services
from runyard.migration.names import Class, Function, Instance, Module, Names, Value, is_sdk
from runyard.migration.report import ERROR, Finding
from runyard.migration.sdk_surface import Callable, Surface
from runyard.sdk.core.validation import did_you_mean

_GUIDE = "the guide on moving from the retired SDK says what is here"

# keywords that releases of 2018 and 2019 took and the last one did not
_REMOVED_KEYWORDS = {
    "Model.register(root_dir=…)": "removed from the SDK in 2019: leave it out, model_path says it all",
    "AciWebservice.deploy_configuration(app_insights_enabled=…)": "renamed in 2018: enable_app_insights",
}


class SdkRules:
    def __init__(self, surface: Surface, names: Names) -> None:
        self._surface = surface
        self._names = names
        self.used: set[str] = set()  # what was asked for and is here

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
        service = cloud_services.of_module(path)
        if service is not None:
            yield _azure(path, service, line)
        elif is_sdk(path):
            yield _unknown(path, "is not a module that is here", _GUIDE, line)

    def _imported(self, node: ast.ImportFrom) -> Iterator[Finding]:
        path = node.module or ""
        if not is_sdk(path) or not self._surface.has_module(path):
            yield from self._module(path, node.lineno)
            return
        here = self._surface.modules.get(path, {})
        for alias in node.names:
            full = f"{path}.{alias.name}"
            if alias.name == "*" or alias.name in here or self._surface.has_module(full):
                self.used.add(path if alias.name == "*" else full)
                if alias.name in cloud_services.CLASSES:  # here by name, so that the rest of a notebook can be read
                    yield _azure(full, cloud_services.CLASSES[alias.name], node.lineno)
                continue
            service = cloud_services.CLASSES.get(alias.name) or cloud_services.of_module(full)
            if service is not None:
                yield _azure(full, service, node.lineno)
            else:
                remedy = _otherwise(alias.name) or did_you_mean(alias.name, here).strip() or _GUIDE
                yield _unknown(full, f"is not in {path}", remedy, node.lineno)

    def _attribute(self, node: ast.Attribute) -> Iterator[Finding]:
        owners = self._names.values(node.value)
        found = [self._missing(owner, node) for owner in owners]
        if found and all(found):  # a name that may be several things is wrong when it is wrong for all of them
            yield from [finding for finding in found if finding][:1]

    def _missing(self, owner: Value, node: ast.Attribute) -> Finding | None:
        if isinstance(owner, Module):
            full = f"{owner.path}.{node.attr}"
            if node.attr in self._surface.modules.get(owner.path, {}) or self._surface.has_module(full):
                self.used.add(full)
                return None
            service = cloud_services.CLASSES.get(node.attr) or cloud_services.of_module(full)
            if node.attr.startswith("__"):
                return None
            if service is not None:
                return _azure(full, service, node.lineno)
            return _unknown(full, "is not here", _otherwise(node.attr) or _GUIDE, node.lineno)
        if not isinstance(owner, (Class, Instance)) or self._surface.kinds[owner.name].answers_to_all:
            return None
        members = self._surface.members_of(owner.name)
        title = f"{owner.name}.{node.attr}"
        if title in cloud_services.MEMBERS:
            return _azure(title, cloud_services.MEMBERS[title], node.lineno)
        if node.attr in members:
            self.used.add(title)
            return None
        strict = "Section" in self._surface.kinds[owner.name].bases
        if isinstance(node.ctx, ast.Store) and not strict:
            return None
        if node.attr.startswith("_"):
            return _unknown(title, "is a private name of the SDK's", "ask for it by a public name", node.lineno)
        close = did_you_mean(node.attr, [name for name in members if not name.startswith("_")])
        return _unknown(title, f"is not a member of {owner.name} here", close.strip() or _GUIDE, node.lineno)

    def _keywords(self, node: ast.Call) -> Iterator[Finding]:
        called = [each for value in self._names.values(node.func) for each in self._callables(value)]
        if not called:
            return
        title, takes = called[0].title, called[0].takes or ()
        for keyword in node.keywords:
            name = keyword.arg
            if name and not name.startswith("_") and all(each.refuses(name) for each in called):
                shown = f"{title}({name}=…)"
                known = ", ".join(each for each in takes if not each.startswith("_")) or "nothing"
                remedy = _REMOVED_KEYWORDS.get(shown) or did_you_mean(name, takes).strip() or f"it takes {known}"
                line = keyword.value.lineno
                yield Finding("unknown-keyword", ERROR, shown, f"{title} takes no {name!r}", remedy, line)

    def _callables(self, value: Value) -> list[Callable]:
        """What a value may be called as; a value that nothing is known of can be called with anything."""
        if isinstance(value, Class):
            return [self._surface.kinds[value.name].made]
        if isinstance(value, Function):
            owner, _, member = value.title.partition(".")
            return self._surface.callables(owner, member) if member else [self._surface.functions[owner]]
        return [Callable("")]


def _otherwise(name: str) -> str:
    return cloud_services.RENAMED[name].alternative if name in cloud_services.RENAMED else ""


def _azure(name: str, service: cloud_services.Service, line: int) -> Finding:
    return Finding("azure-only", ERROR, name, f"{name}: {service.description}", service.alternative, line)


def _unknown(name: str, why: str, remedy: str, line: int) -> Finding:
    return Finding("unknown-name", ERROR, name, f"{name} {why}", remedy, line)
