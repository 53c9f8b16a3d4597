"""Warnings about a run: problems that did not change how it ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

# Version 0.1 stored plain text and recognized an incomplete run by this phrase.
_INCOMPLETE_IN_0_1 = "was not kept whole"


class WarningKind(str, Enum):
    NOTE = "note"
    INCOMPLETE = "incomplete"  # files of the run were not stored: its working copies are kept


@dataclass(frozen=True)
class RunWarning:
    text: str
    kind: WarningKind = WarningKind.NOTE

    def __str__(self) -> str:
        return self.text


def notes(texts: Iterable[str]) -> tuple[RunWarning, ...]:
    return tuple(RunWarning(text) for text in texts)


def incomplete(text: str) -> RunWarning:
    return RunWarning(text, WarningKind.INCOMPLETE)


def is_incomplete(warnings: Iterable[RunWarning]) -> bool:
    """True if files of the run were not stored."""
    return any(warning.kind is WarningKind.INCOMPLETE for warning in warnings)


def to_stored(warning: RunWarning) -> Any:
    """The JSON value for the database: plain text for a note."""
    return warning.text if warning.kind is WarningKind.NOTE else {"kind": warning.kind.value, "text": warning.text}


def from_stored(value: Any) -> RunWarning:
    if isinstance(value, str):
        return incomplete(value) if _INCOMPLETE_IN_0_1 in value else RunWarning(value)
    return RunWarning(value["text"], WarningKind(value["kind"]))
