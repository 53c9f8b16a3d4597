"""Validates logged values that are read from a journal's side lines, which a script can write as it likes."""

from __future__ import annotations

import re
from typing import Any

from runyard.context import format as layout
from runyard.context.documents import KIND_OF_RECORD, make_histogram, to_v1_document, validate_document
from runyard.errors import RunyardException
from runyard.tracking.series import IMAGE, ROW, TABLE

LOGGED_KINDS = {layout.ROW: ROW, layout.TABLE: TABLE, layout.IMAGE: IMAGE, **KIND_OF_RECORD}
_PLAIN = (float, int, bool, str, type(None))
_INTEGER = re.compile(r"-?[0-9]{1,4300}")  # Python refuses to parse longer ones
_TEXTS = (layout.TEXT, layout.IMAGE, layout.NOTE)


def validate_line(kind: int, name: str, line: Any) -> Any:
    """The value of a side line; None if it is not what records of this kind have."""
    if kind in _TEXTS:
        return line if isinstance(line, str) else None
    if kind == layout.BIG_INT:
        return line if isinstance(line, str) and _INTEGER.fullmatch(line) else None
    if kind == layout.LIST:
        return line if _is_list(line) else None
    if not isinstance(line, dict) or not line:
        return None
    if kind == layout.ROW:
        return line if all(type(value) in _PLAIN for value in line.values()) else None
    if kind == layout.TABLE:
        columns = list(line.values())
        return line if all(_is_list(column) and len(column) == len(columns[0]) for column in columns) else None
    return _document(KIND_OF_RECORD[kind], name, line) if kind in KIND_OF_RECORD else None


def _document(kind: str, name: str, line: dict[str, Any]) -> Any:
    try:
        if kind == KIND_OF_RECORD[layout.HISTOGRAM]:
            return make_histogram(name, None, None, line.get("bin_edges"), line.get("bin_counts"))
        return validate_document(kind, name, to_v1_document(kind, line))
    except (RunyardException, RecursionError):
        return None


def _is_list(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) in _PLAIN for value in values)
