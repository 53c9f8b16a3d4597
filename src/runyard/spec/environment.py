"""The Python environment of a run. Built environments are keyed by the content of their specification."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional


@dataclass(frozen=True)
class Framework:
    """A framework whose packages Runyard selects; CPU or GPU packages are chosen once the target is known."""

    name: str  # "pytorch", "tensorflow", "scikit-learn"
    version: str  # "2.13.0"


@dataclass(frozen=True)
class Container:
    image: str
    registry: str = ""
    arguments: tuple[str, ...] = ()
    shm_size: str = ""


@dataclass(frozen=True)
class EnvironmentSpec:
    name: str = "default-environment"
    python: Optional[str] = None  # "3.11"; None = that of the yard
    frameworks: tuple[Framework, ...] = ()
    pip: tuple[str, ...] = ()  # requirement lines, as in a requirements file
    conda: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    gpu: bool = False  # without a GPU on the target, CPU packages are installed with a warning
    user_managed: bool = False  # True: use `interpreter` unchanged, install nothing
    interpreter: Optional[str] = None
    container: Optional[Container] = None
    variables: dict[str, str] = field(default_factory=dict)
