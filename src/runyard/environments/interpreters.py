"""The Pythons of this machine, and the one that a run asks for."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from runyard.environments.prepared import OLDEST_PYTHON, Say
from runyard.errors import EnvironmentException

_PROBE = """
import json, sys, sysconfig
found = {"version": "%d.%d.%d" % sys.version_info[:3], "site": sysconfig.get_path("purelib"), "packages": []}
if "packages" in sys.argv and sys.version_info >= (3, 8):
    from importlib.metadata import distributions
    found["packages"] = sorted({d.metadata["Name"] + "==" + d.version for d in distributions() if d.metadata["Name"]})
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Interpreter:
    path: str
    version: str  # "3.11.7"
    site: str = ""
    packages: tuple[str, ...] = ()


def probe(argv: tuple[str, ...], *, packages: bool = False, timeout_s: float = 30.0) -> Interpreter:
    """What the interpreter says of itself. OSError or ValueError, with its words, when it cannot be run."""
    try:
        done = subprocess.run(
            [*argv, "-c", _PROBE, *(("packages",) if packages else ())],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ValueError(f"no answer within {timeout_s:.0f} s") from error
    try:
        found = json.loads(done.stdout.splitlines()[-1])
        return Interpreter(argv[-1], found["version"], found["site"], tuple(found["packages"]))
    except (IndexError, ValueError, KeyError, TypeError) as error:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise ValueError(said[-1] if said else f"exit code {done.returncode}") from error


class Interpreters:
    """Looks once per version asked for; the answers are kept."""

    def __init__(self, uv: str, environ: Mapping[str, str]) -> None:
        self._uv = uv
        self._environ = environ
        self._kept: dict[str, tuple[str, str]] = {}

    def find(self, asked: str | None, say: Say) -> str:
        """The path of a Python for ``asked`` ("3.10", "3.10.18", ">=3.10"; None = the yard's own version)."""
        if asked is None:
            return sys.executable
        known = self._kept.get(asked)
        if known is None or not Path(known[0]).exists():
            known = self._kept[asked] = self._look(asked)
        path, note = known
        if note:
            say(note)
        return path

    def _look(self, asked: str) -> tuple[str, str]:
        exact, minor = _ranges(asked)
        found = self._on_this_machine()
        for accepted, note in ((exact, ""), (minor, "Python {asked} is not here: Python {version} is used")):
            fitting = [(version, path) for version, path in found if version in accepted]
            if fitting:
                version, path = max(fitting)
                return path, note.format(asked=asked, version=version)
        downloaded = self._downloaded(asked, minor)
        if downloaded:
            return downloaded, ""
        here = ", ".join(sorted({str(version) for version, _ in found}, key=Version))
        raise EnvironmentException(
            f"Python {asked} is not on this machine and could not be downloaded",
            hint=f"Pythons here: {here or 'none'}; leave the version out to use {sys.version.split()[0]}",
        )

    def _on_this_machine(self) -> list[tuple[Version, str]]:
        home = Path(self._environ.get("HOME") or Path.home())
        places = [
            *(Path(folder) for folder in self._environ.get("PATH", os.defpath).split(os.pathsep) if folder),
            Path("/usr/bin"),
            Path("/usr/local/bin"),
            *home.glob(".pyenv/versions/*/bin"),
            *home.glob(".local/share/uv/python/*/bin"),
            *Path("/opt/python").glob("*/bin"),
        ]
        found = {sys.executable: Version(sys.version.split()[0].rstrip("+"))}
        for place in dict.fromkeys(places):
            if place.name == "shims":
                continue  # pyenv's: they answer for Pythons that are not chosen, with an error
            for path in sorted(place.glob("python3.*")):
                if re.fullmatch(r"python3\.\d+", path.name) and os.access(path, os.X_OK) and str(path) not in found:
                    try:
                        found[str(path)] = Version(probe((str(path),)).version)
                    except (OSError, ValueError):
                        continue
        return sorted((version, path) for path, version in found.items() if version.release[:2] >= OLDEST_PYTHON)

    def _downloaded(self, asked: str, accepted: SpecifierSet) -> str | None:
        """A managed Python by uv, when its source answers quickly."""
        impatient = {**self._environ, "UV_HTTP_TIMEOUT": "10", "UV_HTTP_RETRIES": "0"}
        try:
            subprocess.run(
                [self._uv, "python", "install", "--quiet", "--no-bin", asked],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env=impatient,
                timeout=180,
                check=True,
            )
            done = subprocess.run(
                [self._uv, "python", "find", "--managed-python", asked],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                env=impatient,
                timeout=30,
                check=True,
            )
            found = probe((done.stdout.strip(),))
        except (OSError, ValueError, subprocess.SubprocessError):
            return None
        return found.path if Version(found.version) in accepted else None


def checked_python(asked: str | None) -> str:
    """The version text as it enters the key, refused when no run can have it."""
    if asked is None:
        return "{}.{}".format(*sys.version_info[:2])
    _, minor = _ranges(asked)
    if not any(f"3.{n}" in minor or f"3.{n}.99" in minor for n in range(OLDEST_PYTHON[1], 40)):
        raise EnvironmentException(
            f"Python {asked} is too old: a run needs {OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]} or newer",
            hint="ask for a newer version, or leave it out",
        )
    return asked


_ANOTHER_PYTHON = (
    "give the full path of a Python, or let the environment be built: user_managed=False, or --pip in place of "
    "--python on the command line"
)


def user_managed(asked: str | None, environ: Mapping[str, str]) -> Interpreter:
    """The interpreter that a run brings by itself, checked: it is there, it runs, the node kit can live in it."""
    where = path_of_python(asked, environ)
    try:
        found = probe((where,), packages=True)
    except (OSError, ValueError) as error:
        raise EnvironmentException(
            f"{where} does not run as a Python interpreter: {error}", hint=_ANOTHER_PYTHON
        ) from error
    require_supported(found.version, where)
    return found


def path_of_python(asked: str | None, environ: Mapping[str, str]) -> str:
    path = asked or sys.executable
    try:
        where = shutil.which(path, path=environ.get("PATH")) if os.sep not in path else str(Path(path).expanduser())
        is_there = where is not None and Path(where).exists()
    except (OSError, RuntimeError, ValueError) as error:  # too long, of nobody, or in a folder that lets nobody in
        raise EnvironmentException(f"no Python interpreter at {path!r}: {error}", hint=_ANOTHER_PYTHON) from error
    if where is None or not is_there:
        raise EnvironmentException(f"no Python interpreter at {path!r}", hint=_ANOTHER_PYTHON)
    return where


def require_supported(version: str, where: str) -> None:
    if Version(version).release[:2] < OLDEST_PYTHON:
        raise EnvironmentException(
            f"{where} is Python {version}: a run needs {OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]} or newer",
            hint="choose a newer interpreter",
        )


def _ranges(asked: str) -> tuple[SpecifierSet, SpecifierSet]:
    """What fits exactly, and what stands in for a patch release that is not here."""
    text = asked.strip().removeprefix("==").removesuffix(".*")
    try:
        if re.match(r"[<>=!~]", text):
            return SpecifierSet(text), SpecifierSet(text)
        release = Version(text).release
    except (InvalidSpecifier, InvalidVersion) as error:
        raise EnvironmentException(f"{asked!r} is not a version of Python", hint="write it as 3.11") from error
    if len(release) > 2:
        return SpecifierSet(f"=={text}"), SpecifierSet(f"=={release[0]}.{release[1]}.*")
    return SpecifierSet(f"=={text}.*"), SpecifierSet(f"=={text}.*")
