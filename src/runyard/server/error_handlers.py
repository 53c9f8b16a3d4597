"""Errors to answers: the class says the status, the message travels as it is."""

from __future__ import annotations

import logging
import sqlite3
from pathlib import Path

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import DatabaseError
from starlette.exceptions import HTTPException

from runyard import errors
from runyard.server.responses import as_json
from runyard.store.database import is_full
from runyard.store.models import NoSuchModel
from runyard.store.open_store import corrupted
from runyard.store.services import NoSuchService

log = logging.getLogger(__name__)

STATUS_OF: dict[type[errors.RunyardException], int] = {
    errors.RunNotFound: 404,
    errors.HomeUnusable: 507,
    errors.StoreCorrupted: 500,
    errors.YardUnavailable: 503,
    errors.SnapshotException: 409,
    errors.ModelInUse: 409,
    NoSuchModel: 404,
    NoSuchService: 404,
}


def install(app: FastAPI, database: Path) -> None:
    @app.exception_handler(errors.RunyardException)
    def known(request: Request, error: errors.RunyardException) -> Response:
        status = next((STATUS_OF[k] for k in type(error).__mro__ if k in STATUS_OF), 400)
        code = next(kind.__name__ for kind in type(error).__mro__ if getattr(errors, kind.__name__, None) is kind)
        return problem(status, code, error.message, error.hint, error.facts.get("position"))

    @app.exception_handler(RequestValidationError)
    def malformed(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:])
        return problem(
            422, "UserErrorException", f"{request.url.path}: {where}: {first['msg']}", "see the API reference"
        )

    @app.exception_handler(HTTPException)
    def nowhere(request: Request, error: HTTPException) -> Response:
        said = {404: "there is nothing there", 405: "that cannot be done there"}.get(error.status_code, error.detail)
        message = f"{request.method} {request.url.path}: {said}"
        return problem(error.status_code, "RunyardException", message, "see the API reference at /api/docs")

    @app.exception_handler(UnicodeEncodeError)
    def no_text(request: Request, error: UnicodeEncodeError) -> Response:
        return problem(400, "UserErrorException", f"{error.object!r} is not valid text: {error.reason}")

    @app.exception_handler(DatabaseError)
    def damaged(request: Request, error: DatabaseError) -> Response:
        if is_full(error):
            return full(database, str(error.orig))
        log.exception("%s %s", request.method, request.url.path)
        if isinstance(error.orig, sqlite3.DatabaseError) and not isinstance(error.orig, sqlite3.IntegrityError):
            text = str(error.orig)
            if "malformed" in text or "not a database" in text:
                known = corrupted(database, text)
                return problem(500, "StoreCorrupted", known.message, known.hint)
        return problem(500, "RunyardException", f"the yard failed on its database: {error.orig}", "see yard.log")

    @app.exception_handler(OSError)
    def disk(request: Request, error: OSError) -> Response:
        return full(database, str(error.strerror)) if is_full(error) else unknown(request, error)

    @app.exception_handler(Exception)
    def unknown(request: Request, error: Exception) -> Response:
        log.exception("%s %s", request.method, request.url.path)
        return problem(500, "RunyardException", f"the yard failed: {type(error).__name__}: {error}", "see yard.log")


def full(database: Path, text: str) -> Response:
    log.warning("the disk of %s is full: %s", database.parent, text)
    return problem(507, "HomeUnusable", f"the yard cannot write to {database.parent}: {text}", "free some disk space")


def problem(status: int, code: str, message: str, hint: str = "", position: int | None = None) -> Response:
    """``position``: at which character of a query the error is."""
    said: dict[str, object] = {"code": code, "message": message, "hint": hint, "facts": {}}
    if position is not None:
        said |= {"position": position, "facts": {"position": position}}
    return Response(as_json(said), status, media_type="application/json")
