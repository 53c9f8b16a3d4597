"""The Python that a run asks for. What is built from it is keyed by its content."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional


@dataclass(frozen=True)
class Framework:
    """A framework that the yard brings by itself; the builder picks CPU or GPU packages when the target is known."""

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
    python: Optional[str] = None  # "3.11"; None = the yard's own
    frameworks: tuple[Framework, ...] = ()
    pip: tuple[str, ...] = ()  # requirement lines, as in a requirements file
    conda: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    gpu: bool = False  # asked for; without one the builder warns and takes CPU packages
    user_managed: bool = False  # True: run with `interpreter` as it is, install nothing
    interpreter: Optional[str] = None
    container: Optional[Container] = None
    variables: dict[str, str] = field(default_factory=dict)
