"""Parses conda package specifications and translates them to PyPI requirements. No I/O."""

from __future__ import annotations

import re
from dataclasses import dataclass

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from runyard.errors import EnvironmentException

# conda name -> PyPI name; None: not needed there
_PYPI_NAMES = {
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


def parse(text: str) -> CondaSpec:
    """Parse ``numpy=1.26``, ``numpy 1.26.* py311_0``, ``conda-forge::numpy[version='>=1.2']`` …"""
    spec = text.strip().rsplit("::", 1)[-1]
    brackets = _BRACKETS.match(spec)
    if brackets:
        inside = re.search(r"version\s*=\s*['\"]?([^'\",\]]+(?:,[^'\"=\]]+)*)['\"]?", brackets["inside"])
        spec = f"{brackets['name']} {inside[1].strip()}" if inside else brackets["name"]
    match = _SPEC.match(spec)
    if match is None:
        raise EnvironmentException(
            f"invalid conda package {text!r}", hint="write it as name, name=1.2, name==1.2.3 or name>=1.2"
        )
    return CondaSpec(match["name"].lower(), _version(text, (match["rest"] or "").strip()))


def to_pypi(spec: CondaSpec) -> str | None:
    """The equivalent requirement line for PyPI; None for packages that only select builds of others."""
    name = _PYPI_NAMES.get(spec.name, spec.name)
    return None if name is None else name + spec.version


def _version(text: str, rest: str) -> str:
    if not rest:
        return ""
    if "|" in rest:
        raise EnvironmentException(
            f"conda package {text!r}: alternatives ('|') are not supported on PyPI", hint="use one range of versions"
        )
    if rest.startswith("=") and not rest.startswith("=="):
        version, _, build = rest[1:].strip().partition("=")
        if not re.match(r"[<>!~]", version):
            # `=1.26` means 1.26 and its patch releases; with a build string, it is the exact version
            return _validate(text, f"=={version}" if build or version.endswith("*") else f"=={version}.*")
        rest = version
    words = rest.split()
    # the last word of `numpy 1.26.4 py311_0` is a build string, which has no meaning on PyPI
    joined = words[0] if len(words) == 2 and not re.match(r"[<>=!~,]", words[1]) else "".join(words)
    parts = [part if re.match(r"[<>=!~]", part) else f"=={part}" for part in joined.split(",") if part]
    return _validate(text, ",".join(parts))


def _validate(text: str, specifier: str) -> str:
    if specifier in ("==*", "==*.*"):
        return ""
    try:
        return str(SpecifierSet(specifier)) if "," not in specifier else specifier
    except InvalidSpecifier as error:
        raise EnvironmentException(
            f"conda package {text!r}: {specifier!r} is not a valid version", hint="write it as name=1.2 or name>=1.2"
        ) from error
