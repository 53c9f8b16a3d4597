"""Labels of runs and models: tags, properties and parameters."""

from __future__ import annotations

from typing import Any

from runyard.errors import UserErrorException


def as_labels(labels: Any, parameter: str) -> dict[str, str | None]:
    """Convert all values to text; None stays None."""
    if labels is None:
        return {}
    if not isinstance(labels, dict):
        raise UserErrorException(f"{parameter} must be a dict, got {type(labels).__name__} {labels!r}")
    return {str(key): None if value is None else str(value) for key, value in labels.items()}


def as_params(params: Any) -> dict[str, str]:
    """Convert the values of parameters to text; nested dicts become names such as ``optimizer/lr``."""
    from collections.abc import Mapping

    if not isinstance(params, Mapping):
        raise UserErrorException(f"params must be a dict, got {type(params).__name__} {params!r}")
    flat: dict[str, str] = {}
    for name, value in params.items():
        if not isinstance(name, str) or not name:
            raise UserErrorException(f"the name of a parameter must be text, got {name!r}")
        if isinstance(value, Mapping) and value:
            flat.update((f"{name}/{key}", text) for key, text in as_params(value).items())
        else:
            flat[name] = str(value)
    return flat


def label_query(labels: Any, parameter: str) -> str | None:
    """Convert a filter such as ``['area', ['kind', 'digits']]`` to JSON; the value null matches any value."""
    if not labels:
        return None
    import json

    if not isinstance(labels, (list, tuple)):
        raise UserErrorException(
            f"{parameter} must be a list, got {type(labels).__name__} {labels!r}",
            hint=f"keys, or pairs of key and value: {parameter}=['area', ['kind', 'digits']]",
        )
    query: dict[str, str | None] = {}
    for label in labels:
        pair = [label, None] if isinstance(label, str) else list(label)
        if len(pair) != 2:
            raise UserErrorException(f"{parameter} must be keys or pairs of key and value, got {label!r}")
        query[str(pair[0])] = None if pair[1] is None else str(pair[1])
    return json.dumps(query)
