"""Reads the user's pip configuration and translates it for uv, which does not read it."""

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
        return [folder for link in self.values("find-links") if (folder := _local_folder(link)) and folder.is_dir()]


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


@dataclass(frozen=True)
class UvSettings:
    variables: dict[str, str]
    arguments: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def uv_settings(pip: PipConfiguration, environ: Mapping[str, str]) -> UvSettings:
    """The environment variables of uv for a pip configuration, and notes for the log.

    The user's own settings for uv take precedence. Variables are used instead of arguments, because an index URL may
    contain a password, and arguments are visible to all users.
    """
    variables: dict[str, str] = {}
    notes = list(pip.notes)
    if index := pip.options.get("index-url"):
        variables["UV_DEFAULT_INDEX"] = index
    if extra := pip.values("extra-index-url"):
        variables["UV_EXTRA_INDEX_URL"] = " ".join(extra)
    if links := _usable_links(pip.values("find-links"), notes):
        variables["UV_FIND_LINKS"] = ",".join(links)
    if _is_true(pip.options.get("pre", "")):
        variables["UV_PRERELEASE"] = "allow"
    if hosts := pip.values("trusted-host"):
        variables["UV_INSECURE_HOST"] = " ".join(hosts)
    if constraints := pip.values("constraint"):
        variables["UV_CONSTRAINT"] = " ".join(constraints)
    if cert := pip.options.get("cert"):
        variables["SSL_CERT_FILE"] = cert
    if client := pip.options.get("client-cert"):
        variables["SSL_CLIENT_CERT"] = client
    if pip.timeout_s:
        variables["UV_HTTP_TIMEOUT"] = str(max(1, round(pip.timeout_s)))
    if proxy := pip.options.get("proxy"):
        variables["ALL_PROXY"] = proxy
    # pip compares the versions of all indexes; uv by default stops at the first index that has the package
    variables["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    if "UV_INDEX_URL" in environ:
        variables.pop("UV_DEFAULT_INDEX", None)
    return UvSettings(
        {name: value for name, value in variables.items() if not environ.get(name)},
        ("--no-index",) if _is_true(pip.options.get("no-index", "")) else (),
        tuple(notes),
    )


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


def _usable_links(links: Sequence[str], notes: list[str]) -> list[str]:
    usable = []
    for link in links:
        folder = _local_folder(link)
        if folder is not None and not folder.exists():
            # pip only warns, but uv would fail
            notes.append(f"find-links {folder} of the pip configuration does not exist and is ignored")
        else:
            usable.append(str(folder) if folder is not None else link)
    return usable


def _local_folder(link: str) -> Path | None:
    if link.startswith("file://"):
        return Path(link.removeprefix("file://"))
    return None if "://" in link else Path(link).expanduser()


def _is_true(text: str) -> bool:
    return text.strip().lower() in ("1", "true", "yes", "on", "y", "t")
