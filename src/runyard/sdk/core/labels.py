"""Labels of runs and models, tags and properties, as they travel."""

from __future__ import annotations

from runyard.errors import UserErrorException

TYPE_CHECKING = False  # typing itself takes longer to import than this module
if TYPE_CHECKING:
    from typing import Any


def as_labels(labels: Any, what: str) -> dict[str, str | None]:
    """Labels are text; None stays None, everything else is turned into text."""
    if labels is None:
        return {}
    if not isinstance(labels, dict):
        raise UserErrorException(f"{what} must be a dict, not {type(labels).__name__} {labels!r}")
    return {str(key): None if value is None else str(value) for key, value in labels.items()}


def wanted_labels(labels: Any, what: str) -> str | None:
    """What is asked for, ``['area', ['kind', 'digits']]``, as JSON: a key with its value, or null for the key alone."""
    if not labels:
        return None
    import json

    if not isinstance(labels, (list, tuple)):
        raise UserErrorException(
            f"{what} must be a list, not {type(labels).__name__} {labels!r}",
            hint=f"keys, or pairs of key and value: {what}=['area', ['kind', 'digits']]",
        )
    found: dict[str, str | None] = {}
    for one in labels:
        pair = [one, None] if isinstance(one, str) else list(one)
        if len(pair) != 2:
            raise UserErrorException(f"{one!r} in {what} is neither a key nor a pair of key and value")
        found[str(pair[0])] = None if pair[1] is None else str(pair[1])
    return json.dumps(found)
