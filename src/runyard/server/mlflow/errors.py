"""Errors in MLflow's format: a symbolic code and a message."""

from __future__ import annotations

from typing import Any

import orjson
from fastapi import Response

from runyard.errors import HomeUnusable, RunNotFound, RunyardException, UserErrorException

DOES_NOT_EXIST, ALREADY_EXISTS, INVALID = (
    "RESOURCE_DOES_NOT_EXIST",
    "RESOURCE_ALREADY_EXISTS",
    "INVALID_PARAMETER_VALUE",
)
_STATUS = {
    DOES_NOT_EXIST: 404,
    ALREADY_EXISTS: 400,
    INVALID: 400,
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
    elif isinstance(error, RunNotFound):
        code = DOES_NOT_EXIST
    elif isinstance(error, HomeUnusable):
        code = "RESOURCE_EXHAUSTED"
    elif isinstance(error, UserErrorException):
        code = INVALID
    else:
        code = "INTERNAL_ERROR"
    message = f"{error.message} ({error.hint})" if error.hint else error.message
    body = orjson.dumps({"error_code": code, "message": message})
    return Response(body, _STATUS[code], media_type="application/json")


def require(fields: dict[str, Any], *names: str) -> str:
    """Return the first of ``names`` that is present: older clients use another name for the same field."""
    for name in names:
        if fields.get(name) not in (None, ""):
            return str(fields[name])
    raise MlflowError(INVALID, f"missing field {names[0]!r}")


def integer_field(fields: dict[str, Any], name: str, default: int) -> int:
    """Parse an integer, which the JSON of protobuf encodes as a string if it has 64 bits."""
    value = fields.get(name)
    if value in (None, ""):
        return default
    try:
        return int(value)
    except (TypeError, ValueError):
        raise MlflowError(INVALID, f"{name}: expected an integer, got {value!r}") from None
