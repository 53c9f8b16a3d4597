"""The key of an environment: equal for requests that lead to the same packages. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

RECIPE = 1  # raised when the way of building changes what is in an environment


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
    """Requirements and conda packages are sets; options and channels are lists, since the first one wins there.

    ``stamps`` say what cannot be read from a requirement line: the size and time of a local wheel.
    """
    content = {
        "recipe": RECIPE,
        "kind": kind,
        "python": python,
        "platform": platform,
        "requirements": sorted({normalised(line) for line in requirements}),
        "options": list(options),
        "conda": sorted({re.sub(r"\s+", " ", spec.strip().lower()) for spec in conda}),
        "channels": list(channels),
        "backend": backend,
        "stamps": sorted(stamps),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:24]


def normalised(line: str) -> str:
    """``Scikit_Learn >= 1.2 , <2`` and ``scikit-learn<2,>=1.2`` are one requirement."""
    try:
        requirement = Requirement(line)
    except InvalidRequirement:
        return line.strip()
    requirement.name = canonicalize_name(requirement.name)
    return str(requirement)
