"""Translates the output of a failed uv into an error with the solver's reason. No I/O."""

from __future__ import annotations

import re
from collections.abc import Sequence

from runyard.errors import EnvironmentException

_NETWORK = re.compile(
    r"error sending request|Connection refused|failed to lookup address|error resolving DNS|Could not connect|"
    r"timed out|Failed to fetch|Network unreachable|certificate|tls handshake|Network connectivity is disabled",
    re.IGNORECASE,
)
_DISK_FULL = re.compile(r"No space left on device|os error 28|Disk quota exceeded", re.IGNORECASE)
# spaces, the multiplication sign, box drawing and the arrow head that older uv puts before its messages
_DECORATION = re.compile(r"^[\s\u00d7\u2500-\u257f\u25b6]+")
_LABEL = re.compile(r"^(error|cause|Caused by):\s*", re.IGNORECASE)
_NOISE = re.compile(
    r"^(warning: |Using (Python|CPython)|Resolved |Prepared |Installed |Downloading | \+ |Building |Built )"
)
_URL = re.compile(r"(?:Failed to fetch:?|for url)[:\s]*[`(]?(\w+://\S+?)[`)]?(?:\s|$)")
_SEE_LOG = "the run's environment log has the complete output"


def uv_error(output: str, *, activity: str, pip_sources: Sequence[str]) -> EnvironmentException:
    """The error for a uv that ended with a failure while ``activity``."""
    messages, hints = _parse(output)
    text = " ".join(messages)
    if _DISK_FULL.search(text):
        return EnvironmentException(
            f"the disk is full: {messages[-1]}", hint="free some space: runyard envs prune, or uv cache prune"
        )
    if is_network_error(output):
        url = _URL.search(text)
        return index_error(
            messages[-1] if messages else "no reason given",
            pip_sources,
            problem="refuses the request" if "HTTP status" in text else "does not respond",
            url=url[1] if url else "",
        )
    build = re.search(r"Failed to build `([^`]+)`", text)
    if build:
        lines = [line.strip() for line in output.splitlines() if line.strip() and not line.lstrip().startswith("hint:")]
        return EnvironmentException(
            f"{build[1]} cannot be built from its source: {_shorten(lines[-1])}",
            hint=f"{_SEE_LOG}; a version with a wheel needs no build",
        )
    reasons = [message for message in messages if message.startswith(("Because ", "And because "))]
    if reasons:
        return EnvironmentException(
            "no solution for the packages: " + _shorten(" ".join(reasons)),
            hint=" ".join(hints) or "change the packages or versions named above",
        )
    return EnvironmentException(
        _shorten(": ".join(messages)) if messages else f"{activity} failed without output",
        hint=" ".join(hints) or _SEE_LOG,
    )


def index_error(
    reason: str, pip_sources: Sequence[str], *, problem: str = "does not respond", url: str = ""
) -> EnvironmentException:
    """The error for a package index that cannot be used."""
    sources = f"read from: {', '.join(pip_sources)}" if pip_sources else "none was found"
    return EnvironmentException(
        f"the package index {problem}{f' ({url})' if url else ''}: {reason}",
        hint=f"check the network and the indexes of your pip configuration: pip config list ({sources})",
    )


def is_network_error(output: str) -> bool:
    """False if the output is from a solver or a compiler, which may contain any words."""
    return bool(_NETWORK.search(output)) and not re.search(r"\bBecause |Failed to build", output)


def _parse(output: str) -> tuple[list[str], list[str]]:
    """Messages and hints: wrapped lines joined, without labels, decoration and progress."""
    messages: list[str] = []
    hints: list[str] = []
    current = messages
    for raw in output.splitlines():
        line = _DECORATION.sub("", raw)
        if not line or _NOISE.match(raw):
            continue
        if line.startswith("hint: "):
            current = hints
            current.append(line.removeprefix("hint: "))
        elif _LABEL.match(line) or not raw.startswith(" ") or raw.lstrip() != line or not current:
            current = messages
            current.append(_LABEL.sub("", line))
        else:
            current[-1] += " " + line
    return messages, hints


def _shorten(text: str) -> str:
    return text if len(text) <= 4000 else f"{text[:1500]} … {text[-2400:]}"
