"""Finds and probes the Python interpreters of this machine."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from runyard.environments.prepared import OLDEST_PYTHON, ProgressCallback
from runyard.errors import EnvironmentException

_PROBE = """
import json, sys, sysconfig
result = {"version": "%d.%d.%d" % sys.version_info[:3], "site": sysconfig.get_path("purelib"), "packages": []}
if "packages" in sys.argv and sys.version_info >= (3, 8):
    from importlib.metadata import distributions
    result["packages"] = sorted({d.metadata["Name"] + "==" + d.version for d in distributions() if d.metadata["Name"]})
print(json.dumps(result))
"""


@dataclass(frozen=True)
class Interpreter:
    path: str
    version: str  # "3.11.7"
    site: str = ""
    packages: tuple[str, ...] = ()


def probe(argv: tuple[str, ...], *, packages: bool = False, timeout_s: float = 30.0) -> Interpreter:
    """Start an interpreter to get its version and packages. Raises OSError or ValueError if it does not run."""
    try:
        process = subprocess.run(
            [*argv, "-c", _PROBE, *(("packages",) if packages else ())],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ValueError(f"no response within {timeout_s:.0f} s") from error
    try:
        result = json.loads(process.stdout.splitlines()[-1])
        return Interpreter(argv[-1], result["version"], result["site"], tuple(result["packages"]))
    except (IndexError, ValueError, KeyError, TypeError) as error:
        lines = (process.stderr.strip() or process.stdout.strip()).splitlines()
        raise ValueError(lines[-1] if lines else f"exit code {process.returncode}") from error


class Interpreters:
    """Finds interpreters by version; results are cached."""

    def __init__(self, uv: str, environ: Mapping[str, str]) -> None:
        self._uv = uv
        self._environ = environ
        self._cache: dict[str, tuple[str, str]] = {}

    def find(self, version: str | None, report: ProgressCallback) -> str:
        """The path of a Python for a version ("3.10", "3.10.18", ">=3.10"; None = the yard's own Python)."""
        if version is None:
            return sys.executable
        cached = self._cache.get(version)
        if cached is None or not Path(cached[0]).exists():
            cached = self._cache[version] = self._search(version)
        path, note = cached
        if note:
            report(note)
        return path

    def _search(self, requested: str) -> tuple[str, str]:
        """The path of the interpreter, and a note if its version differs."""
        exact, minor = _ranges(requested)
        installed = self._installed()
        for accepted in (exact, minor):
            matches = [(version, path) for version, path in installed if version in accepted]
            if matches:
                version, path = max(matches)
                note = f"Python {requested} is not installed: Python {version} is used"
                return path, "" if accepted is exact else note
        downloaded = self._download(requested, minor)
        if downloaded:
            return downloaded, ""
        versions = ", ".join(sorted({str(version) for version, _ in installed}, key=Version))
        raise EnvironmentException(
            f"Python {requested} is not installed and could not be downloaded",
            hint=f"installed Pythons: {versions or 'none'}; omit the version to use {sys.version.split()[0]}",
        )

    def _installed(self) -> list[tuple[Version, str]]:
        home = Path(self._environ.get("HOME") or Path.home())
        folders = [
            *(Path(folder) for folder in self._environ.get("PATH", os.defpath).split(os.pathsep) if folder),
            Path("/usr/bin"),
            Path("/usr/local/bin"),
            *home.glob(".pyenv/versions/*/bin"),
            *home.glob(".local/share/uv/python/*/bin"),
            *Path("/opt/python").glob("*/bin"),
        ]
        versions = {sys.executable: Version(sys.version.split()[0].rstrip("+"))}
        for folder in dict.fromkeys(folders):
            if folder.name == "shims":
                continue  # of pyenv: they fail for versions that are not selected
            for path in sorted(folder.glob("python3.*")):
                if re.fullmatch(r"python3\.\d+", path.name) and os.access(path, os.X_OK) and str(path) not in versions:
                    try:
                        versions[str(path)] = Version(probe((str(path),)).version)
                    except (OSError, ValueError):
                        continue
        return sorted((version, path) for path, version in versions.items() if version.release[:2] >= OLDEST_PYTHON)

    def _download(self, requested: str, accepted: SpecifierSet) -> str | None:
        """Download a Python with uv; None if its server does not respond quickly."""
        environ = {**self._environ, "UV_HTTP_TIMEOUT": "10", "UV_HTTP_RETRIES": "0"}
        try:
            subprocess.run(
                [self._uv, "python", "install", "--quiet", "--no-bin", requested],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env=environ,
                timeout=180,
                check=True,
            )
            process = subprocess.run(
                [self._uv, "python", "find", "--managed-python", requested],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                env=environ,
                timeout=30,
                check=True,
            )
            interpreter = probe((process.stdout.strip(),))
        except (OSError, ValueError, subprocess.SubprocessError):
            return None
        return interpreter.path if Version(interpreter.version) in accepted else None


def validate_python_version(version: str | None) -> str:
    """The version for the environment key. Raises EnvironmentException if it is not supported."""
    if version is None:
        return "{}.{}".format(*sys.version_info[:2])
    _, minor = _ranges(version)
    if not any(f"3.{n}" in minor or f"3.{n}.99" in minor for n in range(OLDEST_PYTHON[1], 40)):
        raise EnvironmentException(
            f"Python {version} is too old: a run needs {OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]} or newer",
            hint="use a newer version, or omit it",
        )
    return version


def require_supported(version: str, interpreter: str) -> None:
    if Version(version).release[:2] < OLDEST_PYTHON:
        raise EnvironmentException(
            f"{interpreter} is Python {version}: a run needs {OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]} or newer",
            hint="use a newer interpreter",
        )


def _ranges(requested: str) -> tuple[SpecifierSet, SpecifierSet]:
    """The exact range, and the minor version that can replace a missing patch release."""
    text = requested.strip().removeprefix("==").removesuffix(".*")
    try:
        if re.match(r"[<>=!~]", text):
            return SpecifierSet(text), SpecifierSet(text)
        release = Version(text).release
    except (InvalidSpecifier, InvalidVersion) as error:
        raise EnvironmentException(f"{requested!r} is not a Python version", hint="write it as 3.11") from error
    if len(release) > 2:
        return SpecifierSet(f"=={text}"), SpecifierSet(f"=={release[0]}.{release[1]}.*")
    return SpecifierSet(f"=={text}.*"), SpecifierSet(f"=={text}.*")
