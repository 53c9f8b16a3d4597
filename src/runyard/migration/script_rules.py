"""What has changed around training scripts since they were written: frameworks, packages, hosts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version

from runyard.errors import RunyardException
from runyard.migration import cloud_services, removed_apis
from runyard.migration.names import Class, Foreign, Function, Names, is_sdk
from runyard.migration.report import ERROR, NOTE, WARNING, Finding
from runyard.sdk.training.framework_versions import PYTORCH, SCIKIT_LEARN, TENSORFLOW, select_version

_ADDRESS = re.compile(r"https?://([\w.-]+)(/[^\s'\"<>)]*)?")
_FRAMEWORKS = {"PyTorch": PYTORCH, "TensorFlow": TENSORFLOW, "SKLearn": SCIKIT_LEARN}
_PACKAGE_LISTS = {"pip_packages", "conda_packages"}
_ADD_PACKAGE = {"CondaDependencies.add_pip_package", "CondaDependencies.add_conda_package"}
_V1 = "import tensorflow.compat.v1 as tf, then tf.disable_v2_behavior(): it has this name"


class ScriptRules:
    def __init__(self, names: Names) -> None:
        self._names = names

    def findings(self, tree: ast.AST) -> Iterator[Finding]:
        texts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings: nobody's input
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield from _first(_removed(alias.name, alias.name, node.lineno))
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level and not is_sdk(node.module):
                for alias in node.names:
                    path = f"{node.module}.{alias.name}"
                    yield from _first(_removed(path, path, node.lineno))
            elif isinstance(node, ast.Attribute):
                yield from self._attribute(node)
            elif isinstance(node, ast.Call):
                yield from self._versions(node)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in texts:
                yield from addresses(node.value, node.lineno)

    def _attribute(self, node: ast.Attribute) -> Iterator[Finding]:
        owners = self._names.values(node.value)
        if not owners or not all(isinstance(owner, Foreign) for owner in owners):
            return
        found = [
            next(_here(f"{owner.path}.{node.attr}", ast.unparse(node), node.lineno), None)
            for owner in owners
            if isinstance(owner, Foreign)
        ]
        if all(found):
            yield from [finding for finding in found if finding][:1]

    def _versions(self, node: ast.Call) -> Iterator[Finding]:
        called = self._names.values(node.func)
        for value in called:
            if isinstance(value, Class) and value.name in _FRAMEWORKS:
                yield from _framework_version(value.name, node)
            if isinstance(value, Function) and value.title in _ADD_PACKAGE and node.args:
                yield from _packages([node.args[0]])
        ours = [
            value.name if isinstance(value, Class) else "" for value in called if isinstance(value, (Class, Function))
        ]
        if ours:
            for keyword in node.keywords:
                if keyword.arg in _PACKAGE_LISTS and isinstance(keyword.value, (ast.List, ast.Tuple)):
                    yield from _packages(keyword.value.elts, ours[0])


def commands(lines: Iterable[tuple[int, str]]) -> Iterator[Finding]:
    """What a notebook asks a shell for."""
    for line, text in lines:
        words = text.split()
        if not words:
            continue
        service = cloud_services.COMMANDS.get(words[0])
        if service is not None:
            message = f"{words[0]}: {service.description}"
            yield Finding("azure-only", WARNING, f"!{words[0]}", message, service.alternative, line)
        brought = [word for word in words if re.match(r"azureml[-\[\w]*", word)]
        if "install" in words and brought and {"pip", "pip3", "conda"} & set(words):
            yield Finding(
                "other-sdk",
                ERROR,
                f"install {brought[0]}",
                f"{brought[0]} would bring the retired SDK over the names that Runyard answers to",
                "pip install runyard runyard-azureml, once, and leave this line out",
                line,
            )
        elif "nbextension" in words and any(is_sdk(word) for word in words):
            yield Finding(
                "other-sdk", NOTE, "jupyter nbextension", "the widget needs no extension", "leave the line out", line
            )
        yield from addresses(text, line)


def addresses(text: str, line: int) -> Iterator[Finding]:
    for found in _ADDRESS.finditer(text):
        host, path = found[1].lower(), found[2] or ""
        why = removed_apis.HOSTS.get(host) or removed_apis.HOSTS.get(f"{host}/{path.strip('/').partition('/')[0]}")
        if why:
            yield Finding("dead-download", ERROR, found[0], f"{host} no longer serves this", why, line)
        elif host.endswith(removed_apis.STORAGE_HOST):
            yield Finding(
                "azure-storage",
                WARNING,
                found[0],
                f"{host} is somebody's storage account, and many of those days are closed",
                "open the address; if it answers, put the file into a datastore",
                line,
            )


def _here(path: str, shown: str, line: int) -> Iterator[Finding]:
    """A path itself, not what it is below: that was an attribute of its own."""
    package, _, name = path.partition(".")
    if package == "tensorflow":
        plain = name[len("compat.v1.") :] if name.startswith("compat.v1.") else name
        if plain in removed_apis.TENSORFLOW_WITHOUT_A_WAY:
            yield Finding(
                "tensorflow-1",
                ERROR,
                shown,
                f"{shown} is gone from TensorFlow 2, also from tf.compat.v1",
                removed_apis.TENSORFLOW_WITHOUT_A_WAY[plain],
                line,
            )
        elif name in removed_apis.tensorflow_1():
            yield Finding("tensorflow-1", ERROR, shown, f"{shown} is a name of TensorFlow 1", _V1, line)
    elif package == "numpy" and name in (numpy := {**removed_apis.NUMPY, **removed_apis.NUMPY_2_4}):
        yield Finding("numpy-removed", ERROR, shown, f"NumPy has no {shown} any more", numpy[name], line)
    elif package == "numpy" and name in removed_apis.NUMPY_BACK:
        message = f"{shown} is NumPy's own type since 2.0; when this was written it was Python's"
        yield Finding("numpy-removed", NOTE, shown, message, removed_apis.NUMPY_BACK[name], line)
    elif path in removed_apis.PACKAGES:
        yield Finding(
            "package-removed", ERROR, shown, f"there is no {path} any more", removed_apis.PACKAGES[path], line
        )


def _removed(path: str, shown: str, line: int) -> Iterator[Finding]:
    """An imported path, and all that it is below: importing it imports them."""
    parts = path.split(".")
    for length in range(1, len(parts) + 1):
        yield from _here(".".join(parts[:length]), shown, line)


def _first(found: Iterator[Finding]) -> Iterator[Finding]:
    one = next(found, None)
    if one is not None:
        yield one


def _framework_version(name: str, node: ast.Call) -> Iterator[Finding]:
    for keyword in node.keywords:
        if keyword.arg != "framework_version" or not isinstance(keyword.value, ast.Constant):
            continue
        try:
            select_version(_FRAMEWORKS[name], keyword.value.value)
        except RunyardException as error:
            shown = f"framework_version={keyword.value.value!r}"
            remedy = "leave it out, and today's release is used; then look at what the script imports"
            yield Finding("framework-version", ERROR, shown, f"{name}: {error.message}", remedy, keyword.value.lineno)


def _packages(nodes: Iterable[ast.expr], estimator: str = "") -> Iterator[Finding]:
    for node in nodes:
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        try:
            asked = Requirement(re.sub(r"(?<![=<>!~])=(?!=)", "==", node.value))  # conda says one `=`
            name = asked.name.lower().replace("_", "-")
            pins = [Version(each.version) for each in asked.specifier if each.operator == "=="]
        except (InvalidRequirement, InvalidVersion):
            continue
        oldest, needed = removed_apis.OLDEST_RELEASES.get(name), removed_apis.NEEDED_BY.get(estimator, {}).get(name)
        if name in removed_apis.NOT_INSTALLABLE:
            why = removed_apis.NOT_INSTALLABLE[name]
            yield Finding(
                "package-removed", ERROR, node.value, f"{name} cannot be installed any more", why, node.lineno
            )
        elif oldest and any(pin < Version(oldest) for pin in pins):
            yield Finding(
                "framework-version",
                ERROR,
                node.value,
                f"{node.value} was released for Pythons before 3.9, which runs need at least",
                f"leave the version out, or ask for {oldest} or newer",
                node.lineno,
            )
        elif needed and any(pin < Version(needed) for pin in pins):
            yield Finding(
                "framework-version",
                ERROR,
                node.value,
                f"the framework that {estimator} brings needs {name} {needed} or newer",
                "leave the version out",
                node.lineno,
            )
