"""Errors in MLflow's format: a symbolic code and a message."""

from __future__ import annotations

import json
from typing import Any

import orjson
from fastapi import Response

from runyard.errors import (
    HomeUnusable,
    ModelInUse,
    RunNotFound,
    RunyardException,
    UserErrorException,
    WebserviceException,
)
from runyard.store.model_names import ModelNameTaken, ModelNotFound
from runyard.store.webhooks import WebhookNotFound

UNAUTHENTICATED, PERMISSION_DENIED = "UNAUTHENTICATED", "PERMISSION_DENIED"
DOES_NOT_EXIST, ALREADY_EXISTS, INVALID, INVALID_STATE = (
    "RESOURCE_DOES_NOT_EXIST",
    "RESOURCE_ALREADY_EXISTS",
    "INVALID_PARAMETER_VALUE",
    "INVALID_STATE",
)
_STATUS = {
    DOES_NOT_EXIST: 404,
    ALREADY_EXISTS: 400,
    INVALID: 400,
    INVALID_STATE: 400,  # 500 in MLflow's own server, but then clients repeat the request for minutes
    UNAUTHENTICATED: 401,
    PERMISSION_DENIED: 403,
    "ENDPOINT_NOT_FOUND": 404,
    "INTERNAL_ERROR": 500,
    "RESOURCE_EXHAUSTED": 507,
}


class MlflowError(UserErrorException):
    def __init__(self, code: str, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.code = code


def error_response(error: RunyardException) -> Response:
    if isinstance(error, MlflowError):
        code = error.code
    elif isinstance(error, (RunNotFound, ModelNotFound, WebhookNotFound)):
        code = DOES_NOT_EXIST
    elif isinstance(error, ModelNameTaken):
        code = ALREADY_EXISTS
    elif isinstance(error, ModelInUse):
        code = INVALID_STATE
    elif isinstance(error, HomeUnusable):
        code = "RESOURCE_EXHAUSTED"
    elif isinstance(error, (UserErrorException, WebserviceException)):
        code = INVALID
    else:
        code = "INTERNAL_ERROR"
    message = f"{error.message} ({error.hint})" if error.hint else error.message
    if isinstance(error, RunNotFound):  # some programs look for MLflow's own words
        message = f"Run with id={error.facts.get('run_id')} not found: {message}"
    body = orjson.dumps({"error_code": code, "message": message})
    return Response(body, _STATUS[code], media_type="application/json")


def invalid_value(path: str, value: Any, reason: str) -> MlflowError:
    """Build the error for a field; ``path`` is its place in the request, such as ``metrics[0].step``."""
    return MlflowError(INVALID, f"Invalid value {_shorten(value)} for parameter '{path}' supplied: {reason}")


def missing_value(path: str) -> MlflowError:
    return MlflowError(INVALID, f"Missing value for required parameter '{path}'.")


def require(fields: dict[str, Any], *names: str) -> str:
    """Return the first of ``names`` that is present: older clients use another name for the same field."""
    for name in names:
        if fields.get(name) not in (None, ""):
            return str(fields[name])
    raise missing_value(names[0])


def integer_field(fields: dict[str, Any], name: str, default: int) -> int:
    value = fields.get(name)
    return default if value in (None, "") else integer(name, value)


def integer(path: str, value: Any) -> int:
    """Parse an integer of 64 bits, which the JSON of protobuf encodes as a string."""
    try:
        is_integral = not isinstance(value, bool) and (not isinstance(value, float) or value.is_integer())
        number = int(value) if is_integral else None
    except (TypeError, ValueError):
        number = None
    if number is None or not -(2**63) <= number < 2**63:
        raise invalid_value(path, value, "expected a 64-bit integer")
    return number


def _shorten(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."
