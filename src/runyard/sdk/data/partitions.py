"""Partition formats: values in the paths of files, such as ``{state}/{day:yyyy/MM/dd}/data.csv``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Optional

from runyard.errors import UserErrorException

_FIELD = re.compile(r"\{(\w+)(?::([^{}]*))?\}")


def partition_keys_of(partition_format: Optional[str]) -> list[str]:
    return [name for name, _ in _FIELD.findall(partition_format or "")]


def partition_values_of(partition_format: Optional[str], paths: Iterable[str], keys: list[str]) -> list[dict[str, str]]:
    """Return each combination of values once, in the order of the paths."""
    all_keys = partition_keys_of(partition_format)
    unknown = [key for key in keys if key not in all_keys]
    if unknown:
        raise UserErrorException(
            f"the dataset has no partition key {', '.join(map(repr, unknown))}",
            hint=f"its keys: {', '.join(all_keys)}"
            if all_keys
            else "from_files(…, partition_format='{year}/…') defines them",
        )
    combinations: dict[tuple[str, ...], None] = {}
    for path in paths:
        values = parse_partition_path(partition_format, path)
        if values is not None:
            combinations[tuple(values[key] for key in keys)] = None
    return [dict(zip(keys, values)) for values in combinations]


def parse_partition_path(partition_format: Optional[str], path: str) -> Optional[dict[str, str]]:
    """Return the values by key, or None if the path does not match the format."""
    pattern, end = "", 0
    text = (partition_format or "").lstrip("/")
    for field in _FIELD.finditer(text):
        pattern += _literal(text[end : field.start()])
        # a date that spans several folders has as many of them as its format
        pattern += f"(?P<{field[1]}>{'[^/]+' + '/[^/]+' * (field[2] or '').count('/')})"
        end = field.end()
    pattern += _literal(text[end:])
    match = re.search(f"(?:^|/){pattern}$", path)
    return match.groupdict() if match else None


def _literal(text: str) -> str:
    return re.escape(text).replace(r"\*", "[^/]*")
