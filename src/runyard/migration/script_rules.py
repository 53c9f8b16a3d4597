"""Checks training scripts for changes in frameworks, packages and hosts since they were written."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version

from runyard.errors import RunyardException
from runyard.migration import cloud_services, removed_apis
from runyard.migration.names import Class, ExternalName, Function, Names, is_sdk
from runyard.migration.report import ERROR, NOTE, WARNING, Finding
from runyard.sdk.training.framework_versions import PYTORCH, SCIKIT_LEARN, TENSORFLOW, select_version

_URL = re.compile(r"https?://([\w.-]+)(/[^\s'\"<>)]*)?")
_FRAMEWORKS = {"PyTorch": PYTORCH, "TensorFlow": TENSORFLOW, "SKLearn": SCIKIT_LEARN}
_PACKAGE_LISTS = {"pip_packages", "conda_packages"}
_ADD_PACKAGE = {"CondaDependencies.add_pip_package", "CondaDependencies.add_conda_package"}
_V1 = "import tensorflow.compat.v1 as tf, then tf.disable_v2_behavior()"


class ScriptRules:
    """Checks names, package lists and URLs in a script."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def findings(self, tree: ast.AST) -> Iterator[Finding]:
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield from _check_import(alias.name, node.lineno)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level and not is_sdk(node.module):
                for alias in node.names:
                    yield from _check_import(f"{node.module}.{alias.name}", node.lineno)
            elif isinstance(node, ast.Attribute):
                yield from self._attribute(node)
            elif isinstance(node, ast.Call):
                yield from self._versions(node)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                yield from check_urls(node.value, node.lineno)

    def _attribute(self, node: ast.Attribute) -> Iterator[Finding]:
        owners = self._names.values(node.value)
        if not owners or not all(isinstance(owner, ExternalName) for owner in owners):
            return
        findings = [
            next(_check_path(f"{owner.path}.{node.attr}", ast.unparse(node), node.lineno), None)
            for owner in owners
            if isinstance(owner, ExternalName)
        ]
        if all(findings):
            yield from [finding for finding in findings if finding][:1]

    def _versions(self, node: ast.Call) -> Iterator[Finding]:
        values = self._names.values(node.func)
        for value in values:
            if isinstance(value, Class) and value.name in _FRAMEWORKS:
                yield from _framework_version(value.name, node)
            if isinstance(value, Function) and value.title in _ADD_PACKAGE and node.args:
                yield from _packages([node.args[0]])
        sdk_values = [value for value in values if isinstance(value, (Class, Function))]
        if sdk_values:
            estimator = sdk_values[0].name if isinstance(sdk_values[0], Class) else ""
            for keyword in node.keywords:
                if keyword.arg in _PACKAGE_LISTS and isinstance(keyword.value, (ast.List, ast.Tuple)):
                    yield from _packages(keyword.value.elts, estimator)


def check_commands(lines: Iterable[tuple[int, str]]) -> Iterator[Finding]:
    """Check the shell commands of a notebook."""
    for line, text in lines:
        words = text.split()
        if not words:
            continue
        service = cloud_services.COMMANDS.get(words[0])
        if service is not None:
            message = f"{words[0]}: {service.description}"
            yield Finding("azure-only", WARNING, f"!{words[0]}", message, service.alternative, line)
        sdk_packages = [word for word in words if re.match(r"azureml[-\[\w]*", word)]
        if "install" in words and sdk_packages and {"pip", "pip3", "conda"} & set(words):
            package = sdk_packages[0]
            message = f"{package} would replace Runyard's azureml modules by the retired SDK"
            remedy = "pip install runyard runyard-azureml, once, and remove this line"
            yield Finding("other-sdk", ERROR, f"install {package}", message, remedy, line)
        elif "nbextension" in words and any(is_sdk(word) for word in words):
            message = "the widget needs no extension"
            yield Finding("other-sdk", NOTE, "jupyter nbextension", message, "remove the line", line)
        yield from check_urls(text, line)


def check_urls(text: str, line: int) -> Iterator[Finding]:
    for match in _URL.finditer(text):
        host, path = match[1].lower(), match[2] or ""
        reason = removed_apis.HOSTS.get(host) or removed_apis.HOSTS.get(f"{host}/{path.strip('/').partition('/')[0]}")
        if reason:
            yield Finding("dead-download", ERROR, match[0], f"{host} no longer provides this", reason, line)
        elif host.endswith(removed_apis.STORAGE_HOST):
            message = f"{host} is a storage account; many storage accounts of old notebooks are closed"
            remedy = "open the URL; if it works, copy the file to a datastore"
            yield Finding("azure-storage", WARNING, match[0], message, remedy, line)


def _check_path(path: str, code: str, line: int) -> Iterator[Finding]:
    """Check a dotted path, but not its parents, which are checked as separate attributes."""
    package, _, name = path.partition(".")
    if package == "tensorflow":
        plain = name[len("compat.v1.") :] if name.startswith("compat.v1.") else name
        if plain in removed_apis.TENSORFLOW_REMOVED:
            message = f"{code} was removed from TensorFlow 2, also from tf.compat.v1"
            yield Finding("tensorflow-1", ERROR, code, message, removed_apis.TENSORFLOW_REMOVED[plain], line)
        elif name in removed_apis.tensorflow_1():
            yield Finding("tensorflow-1", ERROR, code, f"{code} exists only in TensorFlow 1", _V1, line)
    elif package == "numpy" and name in (numpy := {**removed_apis.NUMPY, **removed_apis.NUMPY_2_4}):
        yield Finding("numpy-removed", ERROR, code, f"{code} was removed from NumPy", numpy[name], line)
    elif package == "numpy" and name in removed_apis.NUMPY_REINTRODUCED:
        message = f"{code} is a NumPy type since 2.0; before 1.24 it was the built-in type"
        yield Finding("numpy-removed", NOTE, code, message, removed_apis.NUMPY_REINTRODUCED[name], line)
    elif path in removed_apis.PACKAGES:
        yield Finding("package-removed", ERROR, code, f"{path} was removed", removed_apis.PACKAGES[path], line)


def _check_import(path: str, line: int) -> Iterator[Finding]:
    """Check an imported path and its parents, which are imported as well; yield the first finding."""
    parts = path.split(".")
    for length in range(1, len(parts) + 1):
        for finding in _check_path(".".join(parts[:length]), path, line):
            yield finding
            return


def _framework_version(name: str, node: ast.Call) -> Iterator[Finding]:
    for keyword in node.keywords:
        if keyword.arg != "framework_version" or not isinstance(keyword.value, ast.Constant):
            continue
        try:
            select_version(_FRAMEWORKS[name], keyword.value.value)
        except RunyardException as error:
            code = f"framework_version={keyword.value.value!r}"
            remedy = "omit it to use the current release, and check what the script imports"
            yield Finding("framework-version", ERROR, code, f"{name}: {error.message}", remedy, keyword.value.lineno)


def _packages(nodes: Iterable[ast.expr], estimator: str = "") -> Iterator[Finding]:
    for node in nodes:
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        try:
            requirement = Requirement(re.sub(r"(?<![=<>!~])=(?!=)", "==", node.value))  # conda uses a single `=`
            name = requirement.name.lower().replace("_", "-")
            pins = [Version(each.version) for each in requirement.specifier if each.operator == "=="]
        except (InvalidRequirement, InvalidVersion):
            continue
        oldest, required = removed_apis.OLDEST_RELEASES.get(name), removed_apis.REQUIRED_BY.get(estimator, {}).get(name)
        if name in removed_apis.NOT_INSTALLABLE:
            rule, message, remedy = (
                "package-removed",
                f"{name} can no longer be installed",
                removed_apis.NOT_INSTALLABLE[name],
            )
        elif oldest and any(pin < Version(oldest) for pin in pins):
            rule, message = "framework-version", f"{node.value} does not support Python 3.9 or newer, which runs need"
            remedy = f"omit the version, or require {oldest} or newer"
        elif required and any(pin < Version(required) for pin in pins):
            rule, remedy = "framework-version", "omit the version"
            message = f"the framework that {estimator} installs needs {name} {required} or newer"
        else:
            continue
        yield Finding(rule, ERROR, node.value, message, remedy, node.lineno)
