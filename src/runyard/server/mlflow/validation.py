"""Type checks of request fields, so that handlers can rely on their types.

MLflow's own server parses requests with protobuf: a string is never a number, an integer may be a string, and null is
the same as an absent field.
"""

from __future__ import annotations

from typing import Any

from runyard.server.mlflow.errors import integer, invalid_value, missing_value

Fields = dict[str, Any]
_STRINGS = frozenset(
    {
        *("run_id", "run_uuid", "experiment_id", "experiment_name", "name", "new_name", "run_name", "user_id", "key"),
        *("metric_key", "filter", "page_token", "path", "model_json", "model_id", "model_type", "artifact_location"),
        *("source_run_id", "tag_key", "dataset_name", "dataset_digest", "digest", "source", "source_type"),
        *("schema", "profile", "field_name", "version", "alias", "description", "stage", "run_link"),
        *("url", "secret", "webhook_id"),
    }
)
_INTEGERS = frozenset({"start_time", "end_time", "timestamp", "step", "max_results", "start_step", "end_step"})
_ENUMS = frozenset({"status", "view_type", "run_view_type"})  # names, or the numbers of protobuf
_OBJECTS = frozenset({"metrics", "params", "tags", "datasets", "models"})
_REQUIRED = {"metrics": ("key", "value", "timestamp"), "params": ("key",), "tags": ("key",)}
_STRING_LISTS = frozenset({"experiment_ids", "run_ids", "stages"})


def validate(fields: Fields, *, value_is_number: bool = False) -> Fields:
    """Check all fields and remove null fields.

    Args:
        fields: The fields of a request, or of an object in it.
        value_is_number: The field ``value`` is that of a metric; otherwise it is the text of a parameter or a tag.
    """
    return _validate(fields, "", value_is_number)


def _validate(fields: Fields, prefix: str, value_is_number: bool) -> Fields:
    values = {name: value for name, value in fields.items() if value is not None}
    return {name: _validate_field(name, f"{prefix}{name}", value, value_is_number) for name, value in values.items()}


def _validate_field(name: str, path: str, value: Any, value_is_number: bool) -> Any:
    if name in _STRINGS or (name == "value" and not value_is_number):
        return _string(path, value)
    if name == "value":
        return _number(path, value)
    if name in _INTEGERS:
        return integer(path, value)
    if name in _ENUMS:
        return str(integer(path, value)) if isinstance(value, (int, float)) else _string(path, value)
    if name in _OBJECTS:
        return [_object(name, f"{path}[{index}]", item) for index, item in enumerate(_list(path, value))]
    if name in _STRING_LISTS:
        return [_string(path, item) for item in _list(path, value)]
    if name == "order_by":  # strings for runs and experiments, objects for logged models
        return [item if isinstance(item, dict) else _string(path, item) for item in _list(path, value)]
    if name == "dataset" and isinstance(value, dict):
        return _validate(value, f"{path}.", value_is_number=False)
    return value


def _string(path: str, value: Any) -> str:
    if not isinstance(value, str):
        raise invalid_value(path, value, "expected a string")
    return value


def _number(path: str, value: Any) -> float:
    """Parse a metric's value; NaN and infinities are strings, as in the JSON of protobuf."""
    try:
        if not isinstance(value, bool):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise invalid_value(path, value, "expected a 64-bit floating-point number")


def _list(path: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise invalid_value(path, value, "expected a list")
    return value


def _object(name: str, path: str, value: Any) -> Fields:
    if not isinstance(value, dict):
        raise invalid_value(path, value, "expected an object")
    for required in _REQUIRED.get(name, ()):
        if value.get(required) in (None, ""):
            raise missing_value(f"{path}.{required}")
    return _validate(value, f"{path}.", value_is_number=name == "metrics")
