"""What a prepared environment is to the code that starts processes in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from runyard.errors import EnvironmentException

Say = Callable[[str], None]

OLDEST_PYTHON = (3, 9)  # what the node kit runs on

# They belong to the Python of the yard: inherited, they would send the script's Python to the yard's packages.
_OF_ANOTHER_PYTHON = (
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONEXECUTABLE",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "__PYVENV_LAUNCHER__",
)


class PreparationAbandoned(EnvironmentException):
    """The run that asked for the environment does not want it any more."""


@dataclass(frozen=True)
class Prepared:
    key: str
    python: str  # as the process sees it: a path on this machine, or inside the image
    argv_prefix: tuple[str, ...] = ()
    path_entries: tuple[str, ...] = ()  # come first on PATH
    variables: dict[str, str] = field(default_factory=dict)
    lock: str = ""  # the resolved packages, one per line, under comments that name the Python
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
        """The argument list and the whole process environment that run ``python *argv_tail`` here.

        ``variables`` are the run's own and win over the environment's; ``inherited`` (this process's by default) is
        what a host process gets besides. PATH is always the environment's entries, then the first PATH set.
        """
        known = dict(os.environ if inherited is None else inherited)
        for name in _OF_ANOTHER_PYTHON:
            known.pop(name, None)
        final = {**known, **self.variables, **variables}
        final["PATH"] = os.pathsep.join([*self.path_entries, final.get("PATH", os.defpath)])
        return (*self.argv_prefix, self.python, *argv_tail), final


@dataclass(frozen=True)
class EnvironmentInfo:
    key: str
    name: str
    path: Path
    size_bytes: int
    created_at: float
    last_used_at: float
    packages: tuple[str, ...]  # what was asked for, as final requirement lines
    python: str  # "3.11.7"
