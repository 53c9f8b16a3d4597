"""Computes the key of an environment: equal for requests that result in the same packages."""

from __future__ import annotations

import hashlib
import json
import platform
import re
import sys
from collections.abc import Iterable, Sequence
from functools import cache

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

RECIPE = 1  # increment when a change of the build process changes the content of environments


def environment_key(
    *,
    kind: str,
    python: str,
    platform: str,
    requirements: Iterable[str] = (),
    options: Sequence[str] = (),
    conda: Iterable[str] = (),
    channels: Sequence[str] = (),
    backend: str = "cpu",
    stamps: Iterable[str] = (),
) -> str:
    """Hash all inputs of an environment.

    The order of requirements and conda packages does not matter; that of options and channels does, because the first
    one takes precedence. ``stamps`` are inputs beyond the requirement lines: the size and time of a local wheel.
    """
    content = {
        "recipe": RECIPE,
        "kind": kind,
        "python": python,
        "platform": platform,
        "requirements": sorted({normalize(line) for line in requirements}),
        "options": list(options),
        "conda": sorted({re.sub(r"\s+", " ", spec.strip().lower()) for spec in conda}),
        "channels": list(channels),
        "backend": backend,
        "stamps": sorted(stamps),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:24]


def normalize(line: str) -> str:
    """Bring equal requirements, ``Scikit_Learn >= 1.2 , <2`` and ``scikit-learn<2,>=1.2``, into the same form."""
    try:
        requirement = Requirement(line)
    except InvalidRequirement:
        return line.strip()
    requirement.name = canonicalize_name(requirement.name)
    return str(requirement)


@cache
def platform_tag() -> str:
    """This machine's platform, as far as packages depend on it."""
    return "-".join((sys.platform, platform.machine(), *platform.libc_ver()))
