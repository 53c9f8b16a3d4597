"""Detection and masking of secrets in text that people pass in clear: URLs with passwords, connection strings, tokens.

Patterns are compiled on first use: scripts and agents import this module and rarely need them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

MASK = "***"
PRIVATE_KEY_MARKER = "PRIVATE KEY"  # in the first line of every PEM file with a private key
_SHORTEST_SECRET = 4  # shorter values would mask parts of ordinary words
_SHORTEST_LINE = 8

# The text to hide is group "secret", or the whole match. No pattern can start inside of a longer word, so that a search
# takes linear time.
_VALUE_PATTERNS = (
    # URLs: the password, or a token in place of the user
    r"[A-Za-z][A-Za-z0-9+.\-]{0,30}://(?:[^\s/:@]*:(?P<secret>[^\s/]+)|(?P<secret>[^\s/:@]{16,}))@",
    # connection strings, and parameters of signed URLs
    r"(?:^|(?<=[;?&\s\"']))(?i:AccountKey|SharedAccessKey|SharedAccessSignature|AccessKey|ClientSecret|Password|Pwd|sig"
    r"|access_token|api_?key|token|X-Amz-Signature|X-Amz-Security-Token|X-Goog-Signature)=(?P<secret>[^;&\s\"']{4,})",
    r"(?<!\w)(?i:Bearer|Basic) +(?P<secret>[A-Za-z0-9._~+/=\-]{16,})",
    # tokens with a known form
    r"(?<![A-Za-z0-9_])hf_[A-Za-z0-9]{20,}",
    r"(?<![A-Za-z0-9_])(?:gh[oprsu]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})",
    r"(?<![A-Za-z0-9_\-])gl(?:pat|dt|rt|ptt|cbt)-[A-Za-z0-9_\-]{20,}",
    r"(?<![A-Za-z0-9_\-])sk-(?:[a-z]{2,10}\d{0,2}-){0,2}[A-Za-z0-9_]{20,}[A-Za-z0-9_\-]*",
    r"(?<![A-Za-z0-9_])[rs]k_(?:live|test)_[A-Za-z0-9]{16,}",
    r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])",
    r"(?<![A-Za-z0-9_\-])(?:xox[abeoprs]|xapp)-[A-Za-z0-9\-]{10,}",
    r"(?<![A-Za-z0-9_\-])AIza[0-9A-Za-z_\-]{35}",
    r"(?<![A-Za-z0-9_\-])(?:pypi-|nvapi-)[A-Za-z0-9_\-]{40,}",
    r"(?<![A-Za-z0-9_])(?:npm_[A-Za-z0-9]{36}|r8_[A-Za-z0-9]{30,}|dop_v1_[0-9a-f]{64}|dapi[0-9a-f]{32})",
    # JSON web tokens and PEM files
    r"(?<![A-Za-z0-9_\-])eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*",
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|\Z)",
)

_VARIABLE_NAME = (
    r"(?:.*_)?(?:TOKEN|SECRET|CREDENTIALS?|PASS|PASSPHRASE|KEY|SAS|CONNECTION_?STRING)"
    r"|.*(?:PASSWORD|PASSWD|APIKEY)|.*_PWD"
)
# stricter than names of variables: --pad-token and --sort-key are ordinary arguments
_ARGUMENT_NAME = (
    r"token|(?:.*[\-_.])?(?:password|passwd|passphrase|secret|credentials?|connection[\-_]?string"
    r"|(?:api|access|secret|private|account|auth|license|subscription)[\-_]?key"
    r"|(?:api|access|auth|bearer|refresh|session|identity|hf|hub|huggingface|github|gitlab|wandb|sas)[\-_]?token)"
)
_REFERENCE = r"\$\w+|\$\{\w+\}|\*+"  # a variable, or a text that was masked before
_HARMLESS_VALUE = rf"[+-]?[\d.]+|true|false|yes|no|on|off|none|null|{_REFERENCE}"


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


@cache
def _value_pattern() -> re.Pattern[str]:
    """All patterns as alternatives of one expression, in which every group has its own name."""
    numbers = iter(range(1000))
    parts = [re.sub(r"\(\?P<secret>", lambda _: f"(?P<secret{next(numbers)}>", text) for text in _VALUE_PATTERNS]
    return re.compile("|".join(f"(?:{part})" for part in parts))


def secret_spans(text: str) -> list[tuple[int, int]]:
    """Positions of the parts of a text that look like secrets, in order; a reference to a variable is none."""
    spans = []
    for match in _value_pattern().finditer(text):
        names = [name for name, value in match.groupdict().items() if value is not None]
        start, end = match.span(names[0]) if names else match.span()
        if not _compiled(_REFERENCE).fullmatch(text, start, end):
            spans.append((start, end))
    return spans


def variable_spans(name: str, value: str) -> list[tuple[int, int]]:
    """As :func:`secret_spans`; the whole value if the name of an environment variable suggests a secret."""
    if not _is_harmless(value) and _compiled(_VARIABLE_NAME).fullmatch(name):
        return [(0, len(value))]
    return secret_spans(value)


def argument_spans(arguments: Sequence[str]) -> dict[int, list[tuple[int, int]]]:
    """As :func:`secret_spans` for each argument, with the values of options such as ``--password``."""
    spans = {}
    follows_name = False
    for index, argument in enumerate(arguments):
        name, equals, value = argument.lstrip("-").partition("=")
        if follows_name and not argument.startswith("--") and not _is_harmless(argument):
            positions = [(0, len(argument))]
        elif equals and not _is_harmless(value) and _compiled(_ARGUMENT_NAME).fullmatch(name):
            positions = [(len(argument) - len(value), len(argument))]
        else:
            positions = secret_spans(argument)
        if positions:
            spans[index] = positions
        follows_name = argument.startswith("-") and not equals and bool(_compiled(_ARGUMENT_NAME).fullmatch(name))
    return spans


def mask_text(text: str) -> str:
    return _replace_spans(text, secret_spans(text))


def mask_variable(name: str, value: str) -> str:
    return _replace_spans(value, variable_spans(name, value))


def mask_label(name: str, value: str | None) -> str | None:
    """Mask the value of a tag, a property or a parameter."""
    if not value:
        return value
    if not _is_harmless(value) and _compiled(_ARGUMENT_NAME).fullmatch(name):
        return MASK
    return mask_text(value)


class Redactor:
    """Replaces known secrets in text, also where they are quoted, escaped or split into lines."""

    def __init__(self, values: Iterable[str]) -> None:
        forms = set()
        for value in values:
            lines = [line.strip() for line in value.splitlines()]
            forms |= {value, *(line for line in lines if len(lines) > 1 and len(line) >= _SHORTEST_LINE)}
        forms |= {form for value in list(forms) for form in _escaped(value)}
        escaped = [re.escape(form) for form in sorted(forms, key=len, reverse=True) if len(form) >= _SHORTEST_SECRET]
        self._pattern = re.compile("|".join(escaped)) if escaped else None

    def text(self, text: str) -> str:
        return text if self._pattern is None else self._pattern.sub(MASK, text)

    def json(self, value: Any) -> Any:
        """Redact every text in a JSON value."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {key: self.json(item) for key, item in value.items()}
        return [self.json(item) for item in value] if isinstance(value, (list, tuple)) else value


def _escaped(value: str) -> tuple[str, ...]:
    """The forms in which a value appears in tracebacks, JSON and URLs."""
    from urllib.parse import quote  # most processes have no secrets

    return repr(value)[1:-1], json.dumps(value)[1:-1], quote(value, safe="", errors="replace")


def _is_harmless(value: str) -> bool:
    return len(value) < _SHORTEST_SECRET or bool(_compiled(_HARMLESS_VALUE).fullmatch(value))


def _replace_spans(text: str, spans: Sequence[tuple[int, int]]) -> str:
    for start, end in reversed(spans):
        text = text[:start] + MASK + text[end:]
    return text
