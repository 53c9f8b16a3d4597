"""The frameworks that the yard brings by itself, and their versions: released, with wheels for Python 3.11."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from runyard.errors import RunyardException, TrainingException
from runyard.sdk.core import validation
from runyard.spec.environment import Framework


@dataclass(frozen=True)
class KnownFramework:
    title: str  # as people write it
    name: str  # as EnvironmentSpec writes it
    versions: tuple[str, ...]  # oldest first
    default: str

    def at(self, version: str) -> Framework:
        return Framework(self.name, version)


PYTORCH = KnownFramework(
    title="PyTorch",
    name="pytorch",
    versions=(
        *("2.4.0", "2.4.1", "2.5.0", "2.5.1", "2.6.0", "2.7.0", "2.7.1", "2.8.0", "2.9.0", "2.9.1"),
        *("2.10.0", "2.11.0", "2.12.0", "2.12.1", "2.13.0"),
    ),
    default="2.13.0",
)
TENSORFLOW = KnownFramework(
    title="TensorFlow",
    name="tensorflow",
    versions=(*("2.16.1", "2.16.2", "2.17.0", "2.17.1", "2.18.0", "2.18.1", "2.19.0", "2.19.1", "2.20.0", "2.21.0"),),
    default="2.21.0",
)
HOROVOD_VERSION = "0.28.1"  # the one that the yard knows how to build
SCIKIT_LEARN = KnownFramework(
    title="scikit-learn",
    name="scikit-learn",
    versions=(
        *("1.4.0", "1.4.1.post1", "1.4.2", "1.5.0", "1.5.1", "1.5.2", "1.6.0", "1.6.1", "1.7.0", "1.7.1", "1.7.2"),
        *("1.8.0", "1.9.0", "1.9.1"),
    ),
    default="1.9.1",
)


def version_of(known: KnownFramework, asked: Any, *, error: type[RunyardException] = TrainingException) -> str:
    """The version to install: ``2.12`` is the newest 2.12, ``2.12.0`` is itself, nothing is the default."""
    if asked is None:
        validation.log.info("%s %s is used; choose another with framework_version", known.title, known.default)
        return known.default
    if not isinstance(asked, str):
        raise validation.wrong("framework_version", asked, f"text such as {known.default!r}", error=error)
    matching = [v for v in known.versions if v == asked or v.startswith(f"{asked}.")]
    if not matching or not re.fullmatch(r"\d+\.\d+(\.\w+)*", asked):
        raise error(
            f"{known.title} {asked} is not available; supported: {', '.join(known.versions)}",
            hint=f"leave the version out for {known.default} (framework_version, or what stands after --framework "
            f"{known.name}), or list the packages yourself: Estimator(pip_packages=…), or --pip",
            framework=known.name,
            version=asked,
            supported=known.versions,
        )
    return asked if asked in matching else matching[-1]


def package_name(line: str) -> str:
    """``scikit-learn`` for ``Scikit_Learn[x]>=1.4``, as PyPI compares names; nothing for an address or a path."""
    found = re.match(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?![\w+/:])", line)
    return re.sub(r"[-_.]+", "-", found[1]).lower() if found else ""
