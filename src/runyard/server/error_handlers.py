"""Error responses: the exception's class determines the status code; the message is sent unchanged."""

from __future__ import annotations

import errno
import logging
import sqlite3
from pathlib import Path

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import DatabaseError
from starlette.exceptions import HTTPException

from runyard import errors
from runyard.secrets.named import SecretNotFound
from runyard.server.responses import json_response
from runyard.store.database import is_disk_full
from runyard.store.model_names import ModelNotFound
from runyard.store.open_store import corruption_error
from runyard.store.services import ServiceNotFound

log = logging.getLogger(__name__)

_REFERENCE = "the API is described in /api/openapi.json"

STATUS_CODES: dict[type[errors.RunyardException], int] = {
    errors.RunNotFound: 404,
    errors.HomeUnusable: 507,
    errors.StoreCorrupted: 500,
    errors.FileCorrupted: 500,
    errors.YardUnavailable: 503,
    errors.SnapshotException: 409,
    errors.ModelInUse: 409,
    ModelNotFound: 404,
    errors.SecretsUnreadable: 409,
    SecretNotFound: 404,
    ServiceNotFound: 404,
}


def install(app: FastAPI, database: Path) -> None:
    @app.exception_handler(errors.RunyardException)
    def runyard_error(request: Request, error: errors.RunyardException) -> Response:
        status = next((STATUS_CODES[k] for k in type(error).__mro__ if k in STATUS_CODES), 400)
        status = 507 if _is_caused_by_full_disk(error) else status
        code = next(kind.__name__ for kind in type(error).__mro__ if getattr(errors, kind.__name__, None) is kind)
        return error_response(status, code, error.message, error.hint, error.facts.get("position"))

    @app.exception_handler(RequestValidationError)
    def invalid_request(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"][1:])
        return error_response(422, "UserErrorException", f"{_path(request)}: {field}: {first['msg']}", _REFERENCE)

    @app.exception_handler(HTTPException)
    def http_error(request: Request, error: HTTPException) -> Response:
        message = f"{request.method} {_path(request)}: {error.detail.lower()}"
        return error_response(error.status_code, "RunyardException", message, _REFERENCE)

    @app.exception_handler(UnicodeEncodeError)
    def invalid_text(request: Request, error: UnicodeEncodeError) -> Response:
        return error_response(400, "UserErrorException", f"{error.object!r} is not valid text: {error.reason}")

    @app.exception_handler(OverflowError)
    def too_large(request: Request, error: OverflowError) -> Response:
        log.warning("%s %s: a number is too large", request.method, _path(request))
        return error_response(400, "UserErrorException", f"{_path(request)}: a number is too large: {error}")

    @app.exception_handler(RecursionError)
    def too_deep(request: Request, error: RecursionError) -> Response:
        log.warning("%s %s: the request is nested too deeply", request.method, _path(request))
        return error_response(400, "UserErrorException", f"{_path(request)}: the request is nested too deeply")

    @app.exception_handler(DatabaseError)
    def database_error(request: Request, error: DatabaseError) -> Response:
        if is_disk_full(error):
            return _disk_full(database, str(error.orig))
        log.error("%s %s", request.method, _path(request), exc_info=error)
        if isinstance(error.orig, sqlite3.DatabaseError) and not isinstance(error.orig, sqlite3.IntegrityError):
            text = str(error.orig)
            if "malformed" in text or "not a database" in text:
                corruption = corruption_error(database, text)
                return error_response(500, "StoreCorrupted", corruption.message, corruption.hint)
        return error_response(500, "RunyardException", f"the yard's database failed: {error.orig}", "see yard.log")

    @app.exception_handler(OSError)
    def os_error(request: Request, error: OSError) -> Response:
        if is_disk_full(error):
            return _disk_full(database, str(error.strerror))
        if error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
            return error_response(400, "UserErrorException", f"{_path(request)}: {error.strerror}")
        return internal_error(request, error)

    @app.exception_handler(Exception)
    def internal_error(request: Request, error: Exception) -> Response:
        log.error("%s %s", request.method, _path(request), exc_info=error)
        message = f"internal error of the yard: {type(error).__name__}: {error}"
        return error_response(500, "RunyardException", message, "see yard.log")


def _is_caused_by_full_disk(error: errors.RunyardException) -> bool:
    """True for the exceptions of any component that could not write."""
    cause: BaseException | None = error
    while cause is not None:
        if is_disk_full(cause):
            return True
        cause = getattr(cause, "inner_exception", None) or cause.__cause__
    return False


def error_response(status: int, code: str, message: str, hint: str = "", position: int | None = None) -> Response:
    """Build the JSON error that clients raise again; ``position`` is the index of the error within a query."""
    content: dict[str, object] = {"code": code, "message": message, "hint": hint, "facts": {}}
    if position is not None:
        content |= {"position": position, "facts": {"position": position}}
    return json_response(content, status)


def _path(request: Request) -> str:
    """The path of a request; not from its URL, which a malformed `Host` header makes invalid."""
    return str(request.scope["path"])


def _disk_full(database: Path, text: str) -> Response:
    log.warning("the disk of %s is full: %s", database.parent, text)
    message = f"the yard cannot write to {database.parent}: {text}"
    return error_response(507, "HomeUnusable", message, "free some disk space")
