"""MLflow's rules for names, aliases and tags in the registry."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import Any

from runyard.errors import UserErrorException
from runyard.models.names import check_alias
from runyard.server.mlflow.constants import from_pairs
from runyard.server.mlflow.errors import INVALID, MlflowError, invalid_value, missing_value, require
from runyard.server.mlflow.limits import check_key

Fields = dict[str, Any]
PROMPT_TAG = "mlflow.prompt.is_prompt"
_MAX_NAME, _MAX_ALIAS, _MAX_TAG_VALUE, _MAX_TEXT = 256, 255, 100_000, 100_000
_ALIAS = re.compile(r"[\w-]+")
_RESERVED_ALIAS = re.compile(r"latest|v\d+", re.IGNORECASE)


def model_title(fields: Fields, field: str = "name") -> str:
    title = require(fields, field)
    if not title.strip():
        raise missing_value(field)
    if "/" in title or ":" in title:
        raise MlflowError(INVALID, f"Invalid model name '{title}'. Names cannot contain '/' or ':'.")
    if posixpath.normpath(title) in (".", "..") or not title.isprintable() or len(title) > _MAX_NAME:
        raise invalid_value(field, title, f"expected at most {_MAX_NAME} printable characters")
    return title


def version_number(fields: Fields) -> int:
    version = require(fields, "version")
    if not version.isascii() or not version.isdecimal() or len(version) > 15:
        raise invalid_value("version", version, "expected the number of a version")
    return int(version)


def alias_to_read(fields: Fields) -> str:
    """Aliases that were set in the yard may contain dots, which MLflow's own server does not accept."""
    alias = require(fields, "alias")
    if len(alias) > _MAX_ALIAS or _ALIAS.fullmatch(alias.replace(".", "")) is None:
        raise _invalid_alias(alias)
    return alias


def alias_to_set(fields: Fields) -> str:
    alias = require(fields, "alias")
    if _RESERVED_ALIAS.fullmatch(alias):
        raise MlflowError(INVALID, f"the alias name {alias!r} is reserved")
    if len(alias) > _MAX_ALIAS or _ALIAS.fullmatch(alias) is None:
        raise _invalid_alias(alias)
    try:
        check_alias(alias)
    except UserErrorException as error:
        raise MlflowError(INVALID, f"Invalid alias name: {alias!r}", hint=error.hint) from None
    return alias


def tag_key(fields: Fields) -> str:
    key = require(fields, "key")
    check_key(key)
    return key


def tag(fields: Fields) -> tuple[str, str]:
    key = tag_key(fields)
    if "value" not in fields:
        raise missing_value("value")
    return key, _checked_value(key, str(fields["value"]))


def tags(fields: Fields) -> Mapping[str, str]:
    pairs = from_pairs(fields.get("tags"))
    for key, value in pairs.items():
        check_key(key)
        _checked_value(key, value)
    if pairs.get(PROMPT_TAG, "").lower() == "true":
        raise MlflowError("ENDPOINT_NOT_FOUND", "the yard does not support MLflow's prompt registry")
    return pairs


def text(fields: Fields, name: str) -> str:
    value = str(fields.get(name) or "")
    if len(value) > _MAX_TEXT:
        raise MlflowError(INVALID, f"'{name}' exceeds the maximum length of {_MAX_TEXT} characters")
    return value


def _checked_value(key: str, value: str) -> str:
    if len(value) > _MAX_TAG_VALUE:
        raise MlflowError(INVALID, f"the value of the tag {key!r} exceeds {_MAX_TAG_VALUE} characters")
    return value


def _invalid_alias(alias: str) -> MlflowError:
    return MlflowError(
        INVALID, f"Invalid alias name: {alias[:100]!r}", hint="use letters, digits, '_' and '-', starting with a letter"
    )
