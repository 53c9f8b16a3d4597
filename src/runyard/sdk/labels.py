"""Labels of runs, tags and properties, as they travel."""

from __future__ import annotations

from typing import Any

from runyard.errors import UserErrorException


def as_labels(labels: Any, what: str) -> dict[str, str | None]:
    """Labels are text; None stays None, everything else is turned into text."""
    if labels is None:
        return {}
    if not isinstance(labels, dict):
        raise UserErrorException(f"{what} must be a dict, not {type(labels).__name__} {labels!r}")
    return {str(key): None if value is None else str(value) for key, value in labels.items()}
