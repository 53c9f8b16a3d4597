"""What uv says when it fails, as a person would tell it: the solver's reason, not its wrapping. Pure."""

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


def failure(output: str, *, doing: str, pip_sources: Sequence[str]) -> EnvironmentException:
    parts, hints = _parts(output)
    whole = " ".join(parts)
    if _DISK_FULL.search(whole):
        return EnvironmentException(
            f"the disk is full: {parts[-1]}", hint="free some space: runyard envs prune, or uv cache prune"
        )
    if is_network(output):
        asked = re.search(r"(?:Failed to fetch:?|for url)[:\s]*[`(]?(\w+://\S+?)[`)]?(?:\s|$)", whole)
        where = f" ({asked[1]})" if asked else ""
        told = f" (read from: {', '.join(pip_sources)})" if pip_sources else " (none was found)"
        verb = "refuses" if "HTTP status" in whole else "does not answer"
        return EnvironmentException(
            f"the package index {verb}{where}: {parts[-1] if parts else 'no reason given'}",
            hint=f"check the network and the indexes of your pip configuration: pip config list{told}",
        )
    built = re.search(r"Failed to build `([^`]+)`", whole)
    if built:
        said = [line.strip() for line in output.splitlines() if line.strip() and not line.lstrip().startswith("hint: ")]
        return EnvironmentException(
            f"{built[1]} cannot be built from its source: {_short(said[-1])}",
            hint="the run's environment log has all that was said; a version with a wheel needs no building",
        )
    solver = [part for part in parts if part.startswith(("Because ", "And because "))]
    if solver:
        return EnvironmentException(
            "no solution for the packages: " + _short(" ".join(solver)),
            hint=" ".join(hints) or "change the packages or versions named above",
        )
    return EnvironmentException(
        _short(": ".join(parts)) if parts else f"{doing} failed without a word",
        hint=" ".join(hints) or "the run's environment log has all that was said",
    )


def is_network(output: str) -> bool:
    """Not so when a solver or a compiler spoke: their words may hold anything."""
    return bool(_NETWORK.search(output)) and not re.search(r"\bBecause |Failed to build", output)


def _parts(output: str) -> tuple[list[str], list[str]]:
    """Messages and hints: wrapped lines joined, labels and drawing taken off, progress left out."""
    parts: list[str] = []
    hints: list[str] = []
    into = parts
    for raw in output.splitlines():
        bare = _DECORATION.sub("", raw)
        if not bare or _NOISE.match(raw):
            continue
        if bare.startswith("hint: "):
            into = hints
            into.append(bare.removeprefix("hint: "))
        elif _LABEL.match(bare) or not raw.startswith(" ") or raw.lstrip() != bare or not into:
            into = parts
            into.append(_LABEL.sub("", bare))
        else:
            into[-1] += " " + bare
    return parts, hints


def _short(text: str) -> str:
    return text if len(text) <= 4000 else f"{text[:1500]} … {text[-2400:]}"
