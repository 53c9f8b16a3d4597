"""MLflow's limits for names, lengths and numbers of things: a client must not store what other MLflow servers refuse.

Values of parameters and tags have no limit here: MLflow's server shortens them by default, the yard stores them whole.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from runyard.server.mlflow.errors import INVALID, MlflowError, invalid_value, missing_value

Fields = dict[str, Any]
_NAME = re.compile(r"[/\w.\- :]*")
_RUN_ID = re.compile(r"[a-zA-Z0-9][\w\-]{0,255}")
_MAX_KEY = 250
_MAX_EXPERIMENT_NAME = 500
_MAX_EXPERIMENT_TAG = 20_000
_MAX_LOCATION = 2048
_MAX_METRICS, _MAX_PARAMS, _MAX_TAGS, _MAX_ITEMS = 1000, 100, 100, 1000
_DATASET_FIELDS = {"name": 500, "digest": 36, "source_type": None, "source": 65_535}
_OPTIONAL_DATASET_FIELDS = {"schema": 1_048_575, "profile": 16_777_215}
_MAX_INPUT_TAG_KEY, _MAX_INPUT_TAG_VALUE = 255, 500
_NOT_IN_MODEL_NAMES = ("/", ":", ".", "%", '"', "'")


def check_metric(metric: Fields, path: str = "") -> None:
    _check_name(metric["key"], f"{path}name")
    if metric["timestamp"] < 0:
        raise invalid_value(f"{path}timestamp", metric["timestamp"], "expected milliseconds since 1970, not negative")
    _check_length("Metric name", metric["key"], _MAX_KEY)


def check_key(key: str, path: str = "key") -> None:
    """Check the key of a parameter or a tag."""
    _check_name(key, path)
    _check_length(path, key, _MAX_KEY)


def check_batch(metrics: Sequence[Fields], params: Sequence[Fields], tags: Sequence[Fields]) -> None:
    for index, metric in enumerate(metrics):
        check_metric(metric, f"metrics[{index}].")
    for name, items in (("params", params), ("tags", tags)):
        for index, item in enumerate(items):
            check_key(item["key"], f"{name}[{index}].key")
    count = len(metrics) + len(params) + len(tags)
    for name, number, limit in (
        ("metrics", len(metrics), _MAX_METRICS),
        ("params", len(params), _MAX_PARAMS),
        ("tags", len(tags), _MAX_TAGS),
        ("metrics, params, and tags", count, _MAX_ITEMS),
    ):
        if number > limit:
            raise MlflowError(
                INVALID,
                f"A batch logging request can contain at most {limit} {name}. Got {number} {name}.",
                hint="send them in several requests",
            )
    keys = [param["key"] for param in params]
    duplicates = sorted({key for key in keys if keys.count(key) > 1})
    if duplicates:
        raise MlflowError(INVALID, f"Duplicate parameter keys have been submitted: {duplicates}")


def check_run_id(run_id: str) -> None:
    if _RUN_ID.fullmatch(run_id) is None:
        raise invalid_value("run_id", run_id, "expected letters, digits, _ and -")


def check_experiment_name(name: str) -> None:
    _check_length("name", name, _MAX_EXPERIMENT_NAME)


def check_experiment_tags(tags: Mapping[str, str]) -> None:
    for key, value in tags.items():
        check_key(key)
        _check_length("value", value, _MAX_EXPERIMENT_TAG)


def check_artifact_location(location: str) -> None:
    """Accept locations that clients write to without the yard: an absolute path, or a URI of another storage."""
    _check_length("artifact_location", location, _MAX_LOCATION)
    try:
        url = urlsplit(location)
    except ValueError as error:
        raise invalid_value("artifact_location", location, str(error)) from None
    if url.fragment or "#" in unquote(url.query) or ".." in unquote(unquote(url.query)):
        raise invalid_value("artifact_location", location, "expected a URI without a fragment and without '..'")
    if url.scheme == "runs":
        raise invalid_value("artifact_location", location, "cannot be a runs:/ URI")
    if url.scheme in ("mlflow-artifacts", "models"):
        reason = "the yard stores the artifacts of its runs itself; omit the location for this"
        raise invalid_value("artifact_location", location, reason)
    if not url.scheme and not location.startswith("/"):
        reason = "relative to a folder of the client, which the yard does not know; use an absolute path or a URI"
        raise invalid_value("artifact_location", location, reason)


def check_path(path: str) -> None:
    """Refuse a path that could leave the folder it is relative to."""
    if path.startswith("/") or "\\" in path or ".." in unquote(path).split("/"):
        raise MlflowError(INVALID, "Invalid path", hint=f"expected a relative path without '..', got {path!r}")


def check_model_name(name: str) -> None:
    if any(character in name for character in _NOT_IN_MODEL_NAMES):
        raise MlflowError(
            INVALID,
            f"Invalid model name ({name!r}) provided.",
            hint=f"a model's name cannot contain any of {' '.join(_NOT_IN_MODEL_NAMES)}",
        )


def check_dataset_input(item: Fields, path: str) -> None:
    dataset = item.get("dataset")
    if not isinstance(dataset, dict):
        raise missing_value(f"{path}.dataset")
    for name, limit in _DATASET_FIELDS.items():
        if name not in dataset:
            raise missing_value(f"{path}.dataset.{name}")
        if limit is not None:
            _check_length(name, dataset[name], limit)
    for name, limit in _OPTIONAL_DATASET_FIELDS.items():
        _check_length(name, dataset.get(name, ""), limit)
    for index, tag in enumerate(item.get("tags") or ()):
        if "value" not in tag:
            raise missing_value(f"{path}.tags[{index}].value")
        _check_length("key", tag["key"], _MAX_INPUT_TAG_KEY)
        _check_length("value", tag["value"], _MAX_INPUT_TAG_VALUE)


def _check_name(name: str, path: str) -> None:
    if _NAME.fullmatch(name) is None:
        reason = "Names may only contain alphanumerics, underscores, dashes, periods, spaces, colons and slashes."
        raise invalid_value(path, name, reason)
    normal = posixpath.normpath(name)
    if normal != name or normal == "." or normal.startswith(("..", "/")):
        reason = f"Names must be valid as relative paths of files. This name would resolve to {normal!r}."
        raise invalid_value(path, name, reason)


def _check_length(name: str, value: str, limit: int) -> None:
    if len(value) > limit:
        raise MlflowError(INVALID, f"'{name}' exceeds the maximum length of {limit} characters")
