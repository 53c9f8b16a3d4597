"""Loads and calls the scoring script: ``init()`` once, then ``run(data)`` per request, in the main thread."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from runyard.scoring import rawhttp, schema
from runyard.scoring.request_head import Head
from runyard.scoring.responses import Response, problem

_ANY_METHOD = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class CannotServe(Exception):
    """The script or model cannot serve; the message has the reason."""


class EntryScript:
    """``methods`` are the HTTP methods of /score; ``score`` never raises."""

    def __init__(self, path: Path) -> None:
        module = _load(path)
        self.init = _function(module, "init", path)
        self._run = _function(module, "run", path)
        self._takes_request = bool(getattr(self._run, rawhttp.MARK, False))
        self.signature = schema.signature_of(self._run)
        self.output = schema.output_of(self._run)
        self.methods = _ANY_METHOD if self._takes_request else ("POST",)

    def score(self, head: Head, body: bytes, request_id: str) -> Response:
        try:
            if self._takes_request:
                request = rawhttp.AMLRequest(head.method, head.path, head.query, head.headers, body)
                return _to_response(self._run(request))
            if self.signature is not None:
                try:
                    arguments = self.signature.arguments(body)
                except schema.Mismatch as error:
                    return problem(400, str(error), request_id)
                return _to_response(self._run(**arguments))
            try:
                text = body.decode("utf-8")
            except UnicodeDecodeError:
                return problem(400, "the request body must be UTF-8 text", request_id)
            return _to_response(self._run(text))
        except Exception:  # noqa: BLE001  the edge: a script may raise anything
            # only in the log: the text of an exception may contain data that clients must not see
            log_traceback(f"request {request_id} failed:\n{traceback.format_exc()}")
            return problem(500, "the scoring script failed; see the service log", request_id)
        except SystemExit as error:
            log_traceback(f"request {request_id}: the scoring script called exit({error.code})\n")
            return problem(500, "the scoring script failed; see the service log", request_id)


def log_traceback(text: str) -> None:
    with suppress(OSError):  # on a full disk, the client must still get a response
        sys.stderr.write(text)
        sys.stderr.flush()


def dumps(value: Any) -> bytes:
    return json.dumps(value, default=_plain, ensure_ascii=False).encode("utf-8", "backslashreplace")


def _to_response(result: Any) -> Response:
    if isinstance(result, rawhttp.AMLResponse):
        body, kind = result.encoded(dumps)
        headers = ((name, str(value)) for name, value in result.headers.items() if _is_allowed_header(name))
        lines = "".join(f"{name}: {' '.join(value.split())}\r\n" for name, value in headers)
        return Response(int(result.status_code), body, kind, lines)
    return Response(200, dumps(result))


def _is_allowed_header(name: str) -> bool:
    reserved = {"content-length", "content-type", "connection", "transfer-encoding", "x-request-id"}
    return name.lower() not in reserved and name.replace("-", "").replace("_", "").isalnum()


def _plain(value: Any) -> Any:
    """Convert numpy values, tensors, data frames and similar objects to plain JSON values."""
    for method in ("tolist", "item"):
        if callable(getattr(value, method, None)):
            return getattr(value, method)()
    if callable(getattr(value, "to_dict", None)):
        return value.to_dict(orient="records") if hasattr(value, "columns") else value.to_dict()
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise TypeError(f"run() returned a {type(value).__name__}, which cannot be converted to JSON")


def _load(path: Path) -> Any:
    if not path.is_file():
        raise CannotServe(f"scoring script {path.name} not found")
    name = path.stem if path.stem.isidentifier() and path.stem not in sys.modules else "entry_script"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise CannotServe(f"the scoring script {path.name} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        raise CannotServe(f"the scoring script {path.name} cannot be imported: {_error_text(error)}") from error
    return module


def _function(module: Any, name: str, path: Path) -> Callable[..., Any]:
    function = getattr(module, name, None)
    if not callable(function):
        raise CannotServe(f"the scoring script {path.name} has no function {name}()")
    return function  # type: ignore[no-any-return]


def initialize(script: EntryScript, path: Path) -> None:
    try:
        script.init()
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        raise CannotServe(f"init() of {path.name} failed: {_error_text(error)}") from error


def _error_text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:500]
