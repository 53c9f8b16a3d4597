"""Errors as MLflow's client expects them: a code by name and a message."""

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


class Fault(UserErrorException):
    def __init__(self, code: str, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.code = code


def told(error: RunyardException) -> Response:
    if isinstance(error, Fault):
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


def required(fields: dict[str, Any], *names: str) -> str:
    """The first of ``names`` that was given: older clients have another name for the same."""
    for name in names:
        if fields.get(name) not in (None, ""):
            return str(fields[name])
    raise Fault(INVALID, f"the request lacks {names[0]!r}")


def whole(fields: dict[str, Any], name: str, default: int) -> int:
    """Whole numbers of 64 bits come as texts in the JSON of protobuf."""
    given = fields.get(name)
    if given in (None, ""):
        return default
    try:
        return int(given)
    except (TypeError, ValueError):
        raise Fault(INVALID, f"{name} must be a whole number, not {given!r}") from None
