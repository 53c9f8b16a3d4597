"""Translates the user's pip configuration for uv, which does not read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runyard.posix.pip_configuration import PipConfiguration, local_folder


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


def _usable_links(links: Sequence[str], notes: list[str]) -> list[str]:
    usable = []
    for link in links:
        folder = local_folder(link)
        if folder is not None and not folder.exists():
            # pip only warns, but uv would fail
            notes.append(f"find-links {folder} of the pip configuration does not exist and is ignored")
        else:
            usable.append(str(folder) if folder is not None else link)
    return usable


def _is_true(text: str) -> bool:
    return text.strip().lower() in ("1", "true", "yes", "on", "y", "t")
