"""Replaces Horovod in the requirements by its run-time dependencies, with a note for each decision. No I/O.

A line for Horovod never reaches the solver: the released source does not build with current frameworks, so Runyard's
recipe builds it, and only the packages that it needs at run time are solved.
"""

from __future__ import annotations

from collections.abc import Sequence

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from runyard.environments.horovod.patches import VERSIONS
from runyard.errors import EnvironmentException

RUN_TIME_DEPENDENCIES = ("cffi", "cloudpickle", "numpy", "packaging", "psutil", "pyyaml")

_EXTRAS = {
    "pytorch": "torch",
    "tensorflow": "tensorflow",
    "tensorflow-cpu": "tensorflow-cpu",
    "tensorflow-gpu": "tensorflow",
    "keras": "keras",
}
_TENSORFLOW = {"tensorflow", "tensorflow-cpu", "tensorflow-gpu"}


def extract_horovod(lines: Sequence[str], estimator_version: str | None, notes: list[str]) -> tuple[list[str], str]:
    """Return the lines for the solver, and the version of Horovod to build ("" for none).

    ``estimator_version`` is the version of the estimator ("" for any); a line of the user takes precedence.
    """
    horovod_lines = [line for line in lines if _is_horovod(line)]
    if not horovod_lines and estimator_version is None:
        return list(lines), ""
    specifier = f"=={estimator_version}" if estimator_version else ""
    solver_lines = [line for line in lines if line not in horovod_lines]
    for line in horovod_lines:
        requirement = Requirement(line)
        specifier = str(requirement.specifier) or specifier
        solver_lines += _packages_of_extras(requirement.extras, solver_lines, notes)
    version = _version(horovod_lines[0] if horovod_lines else f"horovod{specifier}", specifier)
    if horovod_lines:
        notes.append(f"{', '.join(horovod_lines)}: built by Runyard's recipe as Horovod {version}, not by pip")
    names = {_name(line) for line in solver_lines}
    if "openmpi" not in names:
        notes.append("openmpi: added, because Horovod needs it")
        solver_lines.append("openmpi")
    return [*solver_lines, *(package for package in RUN_TIME_DEPENDENCIES if package not in names)], version


def _is_horovod(line: str) -> bool:
    # a line with a URL is passed to the solver unchanged
    return _name(line) == "horovod" and Requirement(line).url is None


def _packages_of_extras(extras: set[str], lines: Sequence[str], notes: list[str]) -> list[str]:
    packages = []
    names = {_name(line) for line in lines}
    for extra in sorted(canonicalize_name(extra) for extra in extras):
        package = _EXTRAS.get(extra)
        if package is None:
            notes.append(f"horovod[{extra}]: the extra is ignored, list the packages that you need from it")
        elif package not in names and not (package in _TENSORFLOW and names & _TENSORFLOW):
            packages.append(package)
    return packages


def _version(line: str, specifier: str) -> str:
    accepted = Requirement(f"horovod{specifier}").specifier
    matches = [version for version in VERSIONS if version in accepted]
    if not matches:
        raise EnvironmentException(
            f"cannot build {line}: there is a recipe only for Horovod {', '.join(VERSIONS)}",
            hint=f"use horovod or horovod=={VERSIONS[-1]}",
        )
    return matches[-1]


def _name(line: str) -> str:
    try:
        return canonicalize_name(Requirement(line).name)
    except InvalidRequirement:
        return ""
