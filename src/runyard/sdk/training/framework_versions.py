"""The frameworks that the yard installs, and their supported versions: those with wheels for Python 3.11."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from runyard.errors import RunyardException, TrainingException
from runyard.sdk.core import validation
from runyard.spec.environment import Framework


@dataclass(frozen=True)
class KnownFramework:
    title: str  # for messages
    name: str  # in EnvironmentSpec
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
HOROVOD_VERSION = "0.28.1"  # the version that the yard can build
SCIKIT_LEARN = KnownFramework(
    title="scikit-learn",
    name="scikit-learn",
    versions=(
        *("1.4.0", "1.4.1.post1", "1.4.2", "1.5.0", "1.5.1", "1.5.2", "1.6.0", "1.6.1", "1.7.0", "1.7.1", "1.7.2"),
        *("1.8.0", "1.9.0", "1.9.1"),
    ),
    default="1.9.1",
)


def select_version(
    framework: KnownFramework, version: Any, *, error: type[RunyardException] = TrainingException
) -> str:
    """Return the version to install: ``2.12`` selects the newest 2.12, None the default."""
    if version is None:
        validation.log.info(
            "using %s %s; select another version with framework_version", framework.title, framework.default
        )
        return framework.default
    if not isinstance(version, str):
        raise validation.invalid("framework_version", version, f"text such as {framework.default!r}", error=error)
    matches = [v for v in framework.versions if v == version or v.startswith(f"{version}.")]
    if not matches or not re.fullmatch(r"\d+\.\d+(\.\w+)*", version):
        raise error(
            f"{framework.title} {version} is not available; supported: {', '.join(framework.versions)}",
            hint=f"leave the version out for {framework.default} (framework_version, or the part after --framework "
            f"{framework.name}), or list the packages yourself: Estimator(pip_packages=…), or --pip",
            framework=framework.name,
            version=version,
            supported=framework.versions,
        )
    return version if version in matches else matches[-1]


def package_name(line: str) -> str:
    """Return ``scikit-learn`` for ``Scikit_Learn[x]>=1.4``, normalized as on PyPI; empty for a URL or a path."""
    match = re.match(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?![\w+/:])", line)
    return re.sub(r"[-_.]+", "-", match[1]).lower() if match else ""
