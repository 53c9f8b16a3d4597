"""Values that stand in the paths of files: ``{state}/{day:yyyy/MM/dd}/data.csv``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Optional

from runyard.errors import UserErrorException

_FIELD = re.compile(r"\{(\w+)(?::([^{}]*))?\}")


def keys_of(partition_format: Optional[str]) -> list[str]:
    return [name for name, _ in _FIELD.findall(partition_format or "")]


def values_of(partition_format: Optional[str], paths: Iterable[str], wanted: list[str]) -> list[dict[str, str]]:
    """Each combination once, in the order of the paths."""
    known = keys_of(partition_format)
    strange = [key for key in wanted if key not in known]
    if strange:
        raise UserErrorException(
            f"the dataset has no partition key {', '.join(map(repr, strange))}",
            hint=f"its keys: {', '.join(known)}" if known else "from_files(…, partition_format='{year}/…') names them",
        )
    found: dict[tuple[str, ...], None] = {}
    for path in paths:
        values = of_path(partition_format, path)
        if values is not None:
            found[tuple(values[key] for key in wanted)] = None
    return [dict(zip(wanted, values)) for values in found]


def of_path(partition_format: Optional[str], path: str) -> Optional[dict[str, str]]:
    """None: the path does not have that form."""
    pattern, end = "", 0
    text = (partition_format or "").lstrip("/")
    for field in _FIELD.finditer(text):
        pattern += _literal(text[end : field.start()])
        # a date that is written over several folders has as many of them as its format
        pattern += f"(?P<{field[1]}>{'[^/]+' + '/[^/]+' * (field[2] or '').count('/')})"
        end = field.end()
    pattern += _literal(text[end:])
    found = re.search(f"(?:^|/){pattern}$", path)
    return found.groupdict() if found else None


def _literal(text: str) -> str:
    return re.escape(text).replace(r"\*", "[^/]*")
