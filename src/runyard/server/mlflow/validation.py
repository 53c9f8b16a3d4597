"""What fields of a request must be, checked in one place: handlers may then take them for what they are."""

from __future__ import annotations

from typing import Any

from runyard.server.mlflow.errors import INVALID, Fault

Fields = dict[str, Any]
_TEXTS = frozenset(
    {
        *("run_id", "run_uuid", "experiment_id", "experiment_name", "name", "new_name", "run_name", "user_id", "key"),
        *("metric_key", "filter", "page_token", "status", "path", "model_json", "model_id", "model_type"),
        *("source_run_id", "view_type", "run_view_type", "tag_key"),
    }
)
_OBJECTS = frozenset({"metrics", "params", "tags", "datasets", "models"})
_WITH_KEY = frozenset({"metrics", "params", "tags"})
_TEXT_LISTS = frozenset({"experiment_ids", "run_ids"})


def checked(given: Fields) -> Fields:
    """Without what is null; numbers where a text is wanted are taken for one, as protobuf's JSON does with ids."""
    return {name: _checked(name, value) for name, value in given.items() if value is not None}


def _checked(name: str, value: Any) -> Any:
    if name in _TEXTS:
        return _text(name, value)
    if name in _OBJECTS:
        return [_object(name, one) for one in _list(name, value)]
    if name in _TEXT_LISTS:
        return [_text(name, one) for one in _list(name, value)]
    if name == "order_by":  # texts for runs and experiments, objects for logged models
        return [one if isinstance(one, dict) else _text(name, one) for one in _list(name, value)]
    if name == "value" and isinstance(value, (list, dict)):
        raise Fault(INVALID, f"'value' must be one value, not {_shown(value)}")
    return value


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise Fault(INVALID, f"{name!r} must be a text, not {_shown(value)}")
    return str(value)


def _list(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise Fault(INVALID, f"{name!r} must be a list, not {_shown(value)}")
    return value


def _object(name: str, value: Any) -> Fields:
    if not isinstance(value, dict):
        raise Fault(INVALID, f"{name!r} must be a list of objects; {_shown(value)} is none")
    if name in _WITH_KEY and "key" not in value:
        raise Fault(INVALID, f"{name!r} has {_shown(value)}, which lacks 'key'")
    return checked(value)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
