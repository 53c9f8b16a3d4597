"""Translates an environment specification to requirement lines for the installer, with a note for each decision.

No I/O.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from runyard.environments import conda_names
from runyard.environments.horovod.requirements import extract_horovod
from runyard.errors import EnvironmentException
from runyard.spec.environment import EnvironmentSpec, Framework

_PROVIDED_BY_RUNYARD = re.compile(
    r"runyard|azureml-(defaults|core|sdk|widgets|telemetry|mlflow|tensorboard|train.*|dataprep.*|contrib-.*|dataset-runtime"
    r"|pipeline.*|interpret|explain-model|opendatasets|automl.*|inference-server-http)"
)

# Packages that install the same files: two of one family in an environment overwrite each other.
_FAMILIES = {
    "tensorflow-cpu": "tensorflow",
    "tensorflow-gpu": "tensorflow",
    "tensorflow-intel": "tensorflow",
    "intel-tensorflow": "tensorflow",
}

# Used together with another framework, or alone.
_MPI_FRAMEWORKS = {"openmpi", "horovod"}

# A list of packages may contain options, as in a requirements file; they apply to solving and installing.
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
_UNSUPPORTED = {"-r", "--requirement", "-c", "--constraint", "-e", "--editable"}


@dataclass(frozen=True)
class InstallPlan:
    requirements: tuple[str, ...]
    options: tuple[str, ...] = ()  # for the installer's command line
    python: str | None = None
    conda: tuple[str, ...] = ()  # to install from a conda channel; empty if they are installed from PyPI
    notes: tuple[str, ...] = ()  # for the log
    warnings: tuple[str, ...] = ()  # for the log and the run
    horovod: str = ""  # the version to build after the other packages are installed


def install_plan(spec: EnvironmentSpec, *, gpu: bool, use_conda: bool, in_image: bool = False) -> InstallPlan:
    """Plan the installation of an environment.

    Args:
        spec: The specification.
        gpu: Install GPU packages.
        use_conda: Install conda packages from their channel, not from PyPI.
        in_image: Install on top of an image's packages, where nothing can be compiled.
    """
    notes: list[str] = []
    warnings: list[str] = []
    lines, options = _split_options(spec.pip)
    lines = _remove_provided(lines, notes)
    python, conda = _conda_packages(spec, notes)
    if not use_conda:
        lines += _from_pypi(conda, notes)
        conda = []
    frameworks = list(spec.frameworks)
    if in_image:
        lines, frameworks = _remove_mpi(lines, frameworks, notes)
    for framework in frameworks:
        if framework.name != "horovod":
            lines = _add_framework(lines, framework, gpu, notes, warnings)
    horovod = next((framework.version for framework in frameworks if framework.name == "horovod"), None)
    lines, version = extract_horovod(lines, horovod, notes)
    return InstallPlan(
        requirements=tuple(dict.fromkeys(lines)),
        options=tuple(options),
        python=spec.python or python,
        conda=tuple(conda),
        notes=tuple(notes),
        warnings=tuple(warnings),
        horovod=version,
    )


def needs_conda(spec: EnvironmentSpec) -> bool:
    """False if the conda list contains only packages that every environment has."""
    return bool(_conda_packages(spec, [])[1])


def uses_gpu_packages(spec: EnvironmentSpec, *, has_gpu: bool) -> bool:
    """For an estimator's framework, `use_gpu` decides; for packages listed by the user, the machine."""
    return has_gpu and (spec.gpu or all(framework.name in _MPI_FRAMEWORKS for framework in spec.frameworks))


def package_name(line: str) -> str:
    """The canonical name of a requirement line; empty for a URL or a path without one."""
    try:
        return canonicalize_name(Requirement(line).name)
    except InvalidRequirement:
        return ""


def local_files(lines: Sequence[str]) -> list[str]:
    """The paths of wheels and archives on this machine."""
    paths = []
    for line in lines:
        location = line.partition("@")[2].strip() if "@ file://" in line or "@file://" in line else line
        if location.startswith(("/", "file://")):
            paths.append(location.removeprefix("file://").split("#")[0].split(";")[0].strip())
    return paths


def _split_options(pip: Sequence[str]) -> tuple[list[str], list[str]]:
    lines: list[str] = []
    options: list[str] = []
    for raw in pip:
        line = re.sub(r"(^|\s)#.*$", "", raw).strip()
        if not line:
            continue
        if line.startswith("-"):
            options += _translate_option(line)
        else:
            lines.append(_validate(line))
    return lines, options


def _translate_option(line: str) -> list[str]:
    name, _, value = line.replace("=", " ", 1).partition(" ") if line.startswith("--") else line.partition(" ")
    value = value.strip()
    if name in _PLAIN_OPTIONS:
        return list(_PLAIN_OPTIONS[name])
    if name in _VALUED_OPTIONS and value:
        return [_VALUED_OPTIONS[name], value]
    if name in _UNSUPPORTED:
        raise EnvironmentException(
            f"{line!r} in the pip packages is not supported: environments are built separately from the run's code",
            hint="list the packages themselves; put your own code into the source directory",
        )
    raise EnvironmentException(
        f"unsupported pip option {line!r}",
        hint=f"supported: {', '.join(sorted({*_VALUED_OPTIONS, *_PLAIN_OPTIONS}))}",
    )


def _validate(line: str) -> str:
    if "://" in line or line.startswith("/"):
        if line.rstrip("/").startswith("/") and not re.search(r"\.(whl|zip|tar\.\w+|tgz)$", line):
            raise EnvironmentException(
                f"{line!r} in the pip packages is a folder: its changes could not be detected",
                hint="build a wheel and use its path, or put the code into the source directory",
            )
        return line
    try:
        requirement = Requirement(line)
    except InvalidRequirement as error:
        raise EnvironmentException(
            f"invalid pip package {line!r}: {str(error).splitlines()[0]}",
            hint="write it as in a requirements file: name, name==1.2.3, name>=1.2 or name[extra]",
        ) from error
    if canonicalize_name(requirement.name) == "tensorflow-gpu":
        requirement.name = "tensorflow"  # retired on PyPI: installing it only raises an error
        return str(requirement)
    return line


def _remove_provided(lines: Sequence[str], notes: list[str]) -> list[str]:
    remaining = []
    for line in lines:
        name = package_name(line)
        if _PROVIDED_BY_RUNYARD.fullmatch(name):
            notes.append(f"{name}: provided by Runyard")
        else:
            remaining.append(line)
    return remaining


def _conda_packages(spec: EnvironmentSpec, notes: list[str]) -> tuple[str | None, list[str]]:
    """The Python version in the conda list, and the other conda packages."""
    python: str | None = None
    packages: list[str] = []
    for text in spec.conda:
        package = conda_names.parse(text)
        if package.name == "python":
            python = package.version.removeprefix("==").removesuffix(".*") or None
        elif package.name == "pip":
            notes.append("pip: not needed, packages are installed from outside the environment")
        elif _PROVIDED_BY_RUNYARD.fullmatch(package.name):
            notes.append(f"{package.name}: provided by Runyard")
        else:
            packages.append(text)
    return python, packages


def _from_pypi(conda: Sequence[str], notes: list[str]) -> list[str]:
    lines = []
    for text in conda:
        line = conda_names.to_pypi(conda_names.parse(text))
        if line is None:
            notes.append(f"conda package {text}: not installed, it only selects builds of other conda packages")
        else:
            notes.append(f"conda package {text}: installed from PyPI as {line}")
            lines.append(line)
    return lines


def _remove_mpi(lines: list[str], frameworks: list[Framework], notes: list[str]) -> tuple[list[str], list[Framework]]:
    remaining_lines = [line for line in lines if package_name(line) != "horovod"]
    remaining_frameworks = [framework for framework in frameworks if framework.name not in _MPI_FRAMEWORKS]
    if len(remaining_lines) != len(lines) or len(remaining_frameworks) != len(frameworks):
        notes.append("Open MPI and Horovod: those of the image are used, because nothing can be compiled for it here")
    return remaining_lines, remaining_frameworks


def _add_framework(
    lines: list[str], framework: Framework, gpu: bool, notes: list[str], warnings: list[str]
) -> list[str]:
    framework_line = _framework_line(framework, gpu)
    family = _family(package_name(framework_line))
    user_lines = [line for line in lines if _family(package_name(line)) == family]
    pinned = [line for line in user_lines if "@" in line or Requirement(line).specifier]
    if pinned:
        warnings.append(f"{', '.join(pinned)} from your packages is used instead of {framework_line}")
        return lines
    for line in user_lines:
        notes.append(f"{line}: {framework_line}, the version of the estimator")
    rest = [line for line in lines if line not in user_lines]
    if framework.name == "pytorch" and "numpy" not in map(package_name, rest):
        rest.append("numpy")  # torch works without it, but prints a warning into the script's log
    return [framework_line, *rest]


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
        f"unknown framework {framework.name!r}",
        hint="frameworks: pytorch, tensorflow, scikit-learn, openmpi, horovod",
    )


def _family(name: str) -> str:
    return _FAMILIES.get(name, name)
