"""Type checks of request fields, so that handlers can rely on their types."""

from __future__ import annotations

from typing import Any

from runyard.server.mlflow.errors import INVALID, MlflowError

Fields = dict[str, Any]
_STRINGS = frozenset(
    {
        *("run_id", "run_uuid", "experiment_id", "experiment_name", "name", "new_name", "run_name", "user_id", "key"),
        *("metric_key", "filter", "page_token", "status", "path", "model_json", "model_id", "model_type"),
        *("source_run_id", "view_type", "run_view_type", "tag_key"),
    }
)
_OBJECTS = frozenset({"metrics", "params", "tags", "datasets", "models"})
_WITH_KEY = frozenset({"metrics", "params", "tags"})
_STRING_LISTS = frozenset({"experiment_ids", "run_ids"})


def validate(fields: Fields) -> Fields:
    """Check all fields. Null fields are removed; numbers are accepted as strings, as in the JSON of protobuf."""
    return {name: _validate_field(name, value) for name, value in fields.items() if value is not None}


def _validate_field(name: str, value: Any) -> Any:
    if name in _STRINGS:
        return _string(name, value)
    if name in _OBJECTS:
        return [_object(name, item) for item in _list(name, value)]
    if name in _STRING_LISTS:
        return [_string(name, item) for item in _list(name, value)]
    if name == "order_by":  # strings for runs and experiments, objects for logged models
        return [item if isinstance(item, dict) else _string(name, item) for item in _list(name, value)]
    if name == "value" and isinstance(value, (list, dict)):
        raise MlflowError(INVALID, f"'value': expected a single value, got {_shorten(value)}")
    return value


def _string(name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise MlflowError(INVALID, f"{name!r}: expected a string, got {_shorten(value)}")
    return str(value)


def _list(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise MlflowError(INVALID, f"{name!r}: expected a list, got {_shorten(value)}")
    return value


def _object(name: str, value: Any) -> Fields:
    if not isinstance(value, dict):
        raise MlflowError(INVALID, f"{name!r}: expected a list of objects, got an item {_shorten(value)}")
    if name in _WITH_KEY and "key" not in value:
        raise MlflowError(INVALID, f"{name!r}: missing 'key' in {_shorten(value)}")
    return validate(value)


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
