"""Conda package specifications read, and said again in PyPI's words. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from runyard.errors import EnvironmentException

# The same software under another name on PyPI.
_RENAMED = {
    "blas": None,
    "cpuonly": None,
    "cudatoolkit": None,
    "cudnn": None,
    "dask-core": "dask",
    "matplotlib-base": "matplotlib",
    "msgpack-python": "msgpack",
    "nomkl": None,
    "opencv": "opencv-python",
    "py-opencv": "opencv-python",
    "pytables": "tables",
    "pytorch": "torch",
    "pytorch-cpu": "torch",
    "pytorch-cuda": None,
    "pytorch-gpu": "torch",
    "tensorflow-base": "tensorflow",
    "tensorflow-gpu": "tensorflow",
    "tensorflow-mkl": "tensorflow",
    "torchvision-cpu": "torchvision",
}

_BRACKETS = re.compile(r"^(?P<name>[^\[\s]+)\s*\[(?P<inside>.*)\]\s*$")
_SPEC = re.compile(r"^(?P<name>[A-Za-z0-9_.-]+?)\s*(?P<rest>[=<>!~ ].*)?$")


@dataclass(frozen=True)
class CondaSpec:
    name: str
    version: str = ""  # a PEP 440 specifier set: "==1.26.*", ">=1.2,<2"


def read(text: str) -> CondaSpec:
    """``numpy=1.26``, ``numpy 1.26.* py311_0``, ``conda-forge::numpy[version='>=1.2']`` …"""
    spec = text.strip().rsplit("::", 1)[-1]
    bracketed = _BRACKETS.match(spec)
    if bracketed:
        inside = re.search(r"version\s*=\s*['\"]?([^'\",\]]+(?:,[^'\"=\]]+)*)['\"]?", bracketed["inside"])
        spec = f"{bracketed['name']} {inside[1].strip()}" if inside else bracketed["name"]
    found = _SPEC.match(spec)
    if found is None:
        raise EnvironmentException(
            f"conda package {text!r} cannot be read", hint="write it as name, name=1.2, name==1.2.3 or name>=1.2"
        )
    return CondaSpec(found["name"].lower(), _version(text, (found["rest"] or "").strip()))


def on_pypi(spec: CondaSpec) -> str | None:
    """The requirement line that means the same on PyPI; None for what only selects builds there."""
    name = _RENAMED.get(spec.name, spec.name)
    return None if name is None else name + spec.version


def _version(text: str, rest: str) -> str:
    if not rest:
        return ""
    if "|" in rest:
        raise EnvironmentException(
            f"conda package {text!r}: alternatives ('|') have no counterpart on PyPI", hint="name one range of versions"
        )
    if rest.startswith("=") and not rest.startswith("=="):
        version, _, build = rest[1:].strip().partition("=")
        if not re.match(r"[<>!~]", version):
            # `=1.26` is "1.26 and its patches"; with a build string behind it, it is that very version
            return _checked(text, f"=={version}" if build or version.endswith("*") else f"=={version}.*")
        rest = version
    words = rest.split()
    # the last word of `numpy 1.26.4 py311_0` is a build string, which only conda knows
    joined = words[0] if len(words) == 2 and not re.match(r"[<>=!~,]", words[1]) else "".join(words)
    parts = [part if re.match(r"[<>=!~]", part) else f"=={part}" for part in joined.split(",") if part]
    return _checked(text, ",".join(parts))


def _checked(text: str, specifier: str) -> str:
    if specifier in ("==*", "==*.*"):
        return ""
    try:
        return str(SpecifierSet(specifier)) if "," not in specifier else specifier
    except InvalidSpecifier as error:
        raise EnvironmentException(
            f"conda package {text!r}: {specifier!r} is not a version", hint="write it as name=1.2 or name>=1.2"
        ) from error
