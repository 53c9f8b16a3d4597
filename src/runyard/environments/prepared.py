"""A prepared environment: everything needed to start processes in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from runyard.errors import EnvironmentException

ProgressCallback = Callable[[str], None]  # receives one line of text

OLDEST_PYTHON = (3, 9)  # supported by the node package

# Set for the yard's own Python. If inherited, they would make the script's Python load the yard's packages.
_PYTHON_VARIABLES = (
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONEXECUTABLE",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "__PYVENV_LAUNCHER__",
)


class PreparationCanceled(EnvironmentException):
    """The run that requested the environment was canceled."""


@dataclass(frozen=True)
class Prepared:
    key: str
    python: str  # as the process sees it: a path on this machine, or inside the image
    argv_prefix: tuple[str, ...] = ()
    path_entries: tuple[str, ...] = ()  # prepended to PATH
    variables: dict[str, str] = field(default_factory=dict)
    lock: str = ""  # the resolved packages, one per line, after comments that name the Python
    warnings: tuple[str, ...] = ()
    stop_argv: tuple[str, ...] = ()

    def command(
        self,
        argv_tail: Sequence[str],
        variables: Mapping[str, str],
        workdir: Path,
        *,
        inherited: Mapping[str, str] | None = None,
    ) -> tuple[tuple[str, ...], dict[str, str]]:
        """The argument list and the complete process environment to run ``python *argv_tail``.

        Args:
            argv_tail: The arguments after the interpreter.
            variables: Of the run; they take precedence over the environment's.
            workdir: The working directory.
            inherited: The variables that a process on this machine inherits; default: those of this process.
        """
        base = dict(os.environ if inherited is None else inherited)
        for name in _PYTHON_VARIABLES:
            base.pop(name, None)
        environment = {**base, **self.variables, **variables}
        environment["PATH"] = os.pathsep.join([*self.path_entries, environment.get("PATH", os.defpath)])
        return (*self.argv_prefix, self.python, *argv_tail), environment


@dataclass(frozen=True)
class EnvironmentInfo:
    key: str
    name: str
    path: Path
    size_bytes: int
    created_at: float
    last_used_at: float
    packages: tuple[str, ...]  # the requested packages, as requirement lines
    python: str  # "3.11.7"
