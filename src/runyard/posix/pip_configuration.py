"""Reads the user's pip configuration: files and `PIP_*` variables, with the precedence of pip."""

from __future__ import annotations

import configparser
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_CREDENTIALS = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*://)[^\s/]+@", re.IGNORECASE)


@dataclass(frozen=True)
class PipConfiguration:
    options: dict[str, str] = field(default_factory=dict)  # "index-url" -> its text, as pip would see it
    sources: tuple[str, ...] = ()  # the files and variables that set an option
    notes: tuple[str, ...] = ()

    def values(self, name: str) -> list[str]:
        return self.options.get(name, "").split()

    @property
    def timeout_s(self) -> float:
        """0 if not set."""
        try:
            return float(self.options.get("timeout") or self.options.get("default-timeout") or 0)
        except ValueError:
            return 0.0

    @property
    def local_wheel_folders(self) -> list[Path]:
        return [folder for link in self.values("find-links") if (folder := local_folder(link)) and folder.is_dir()]


def read_pip_configuration(environ: Mapping[str, str] | None = None, prefix: str = sys.prefix) -> PipConfiguration:
    """Read pip's files from the most general to the most specific, then `PIP_*` variables; later values win."""
    variables = os.environ if environ is None else environ
    sections: dict[str, dict[str, str]] = {"global": {}, "install": {}}
    sources: list[str] = []
    notes: list[str] = []
    for path in _files(variables, prefix):
        parser = configparser.RawConfigParser()
        try:
            if not parser.read(path):
                continue
        except (configparser.Error, UnicodeDecodeError) as error:
            notes.append(f"pip configuration {path} cannot be read and is ignored: {str(error).splitlines()[0]}")
            continue
        sources.append(str(path))
        for section, values in sections.items():
            if parser.has_section(section):
                values.update({_option_name(name): value for name, value in parser.items(section)})
    options = {**sections["global"], **sections["install"]}
    for name, value in variables.items():
        if name.startswith("PIP_") and value and name not in ("PIP_CONFIG_FILE", "PIP_VERSION"):
            options[_option_name(name.removeprefix("PIP_"))] = value
            sources.append(name)
    return PipConfiguration({name: value for name, value in options.items() if value}, tuple(sources), tuple(notes))


def redact(text: str) -> str:
    """Remove user names and passwords from URLs in a text."""
    return _CREDENTIALS.sub(r"\g<scheme>", text)


def _files(variables: Mapping[str, str], prefix: str) -> Sequence[Path]:
    extra = variables.get("PIP_CONFIG_FILE", "")
    if extra == os.devnull:
        return ()  # documented by pip: read no files
    home = Path(variables.get("HOME") or Path.home())
    shared = [
        Path(folder) / "pip" / "pip.conf"
        for folder in (variables.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep)
        if folder
    ]
    user = Path(variables.get("XDG_CONFIG_HOME") or home / ".config") / "pip" / "pip.conf"
    site = Path(prefix) / "pip.conf"
    files = [*shared, Path("/etc/pip.conf"), home / ".pip" / "pip.conf", user, site]
    return [*files, Path(extra).expanduser()] if extra else files


def _option_name(name: str) -> str:
    return name.lower().replace("_", "-").removeprefix("--")


def local_folder(link: str) -> Path | None:
    if link.startswith("file://"):
        return Path(link.removeprefix("file://"))
    return None if "://" in link else Path(link).expanduser()
