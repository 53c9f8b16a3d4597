"""The scoring script: ``init()`` once, then ``run(text)`` for each request, in the main thread as scripts expect."""

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
from runyard.scoring.responses import Answer, problem

_ANY_METHOD = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class Unusable(Exception):
    """The script cannot serve; its text says why."""


class Script:
    """``methods`` are those of /score; ``answer`` never raises."""

    def __init__(self, path: Path) -> None:
        module = _loaded(path)
        self.init = _function(module, "init", path)
        self._run = _function(module, "run", path)
        self._takes_request = bool(getattr(self._run, rawhttp.MARK, False))
        self.signature = schema.of(self._run)
        self.output = schema.output_of(self._run)
        self.methods = _ANY_METHOD if self._takes_request else ("POST",)

    def answer(self, head: Head, body: bytes, request_id: str) -> Answer:
        try:
            if self._takes_request:
                request = rawhttp.AMLRequest(head.method, head.path, head.query, head.headers, body)
                return _as_answer(self._run(request))
            if self.signature is not None:
                try:
                    given = self.signature.arguments(body)
                except schema.Mismatch as why:
                    return problem(400, str(why), request_id)
                return _as_answer(self._run(**given))
            try:
                text = body.decode("utf-8")
            except UnicodeDecodeError:
                return problem(400, "the body must be text in UTF-8", request_id)
            return _as_answer(self._run(text))
        except Exception:  # noqa: BLE001  the edge: whatever somebody's script raises
            # told to the log alone: the text of an exception may hold what a client must not read
            tell_log(f"request {request_id} failed:\n{traceback.format_exc()}")
            return problem(500, "the scoring script failed on this request: its log says why", request_id)
        except SystemExit as ended:
            tell_log(f"request {request_id}: the scoring script called exit({ended.code})\n")
            return problem(500, "the scoring script failed on this request: its log says why", request_id)


def tell_log(text: str) -> None:
    with suppress(OSError):  # the disk is full: the client would get no answer, and its place would stay taken
        sys.stderr.write(text)
        sys.stderr.flush()


def dumps(value: Any) -> bytes:
    return json.dumps(value, default=_plain, ensure_ascii=False).encode("utf-8", "backslashreplace")


def _as_answer(result: Any) -> Answer:
    if isinstance(result, rawhttp.AMLResponse):
        body, kind = result.encoded(dumps)
        own = ((name, str(value)) for name, value in result.headers.items() if _may_be_sent(name))
        lines = "".join(f"{name}: {' '.join(value.split())}\r\n" for name, value in own)
        return Answer(int(result.status_code), body, kind, lines)
    return Answer(200, dumps(result))


def _may_be_sent(name: str) -> bool:
    ours = {"content-length", "content-type", "connection", "transfer-encoding", "x-request-id"}
    return name.lower() not in ours and name.replace("-", "").replace("_", "").isalnum()


def _plain(value: Any) -> Any:
    """numpy's arrays and numbers, tensors, data frames: whatever has a plain form of itself."""
    for how in ("tolist", "item"):
        if callable(getattr(value, how, None)):
            return getattr(value, how)()
    if callable(getattr(value, "to_dict", None)):
        return value.to_dict(orient="records") if hasattr(value, "columns") else value.to_dict()
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise TypeError(f"run() returned a {type(value).__name__}, which has no form in JSON")


def _loaded(path: Path) -> Any:
    if not path.is_file():
        raise Unusable(f"there is no scoring script {path.name}")
    name = path.stem if path.stem.isidentifier() and path.stem not in sys.modules else "entry_script"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise Unusable(f"the scoring script {path.name} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        raise Unusable(f"the scoring script {path.name} cannot be imported: {_said(error)}") from error
    return module


def _function(module: Any, name: str, path: Path) -> Callable[..., Any]:
    found = getattr(module, name, None)
    if not callable(found):
        raise Unusable(f"the scoring script {path.name} has no function {name}()")
    return found  # type: ignore[no-any-return]


def begin(script: Script, path: Path) -> None:
    try:
        script.init()
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        raise Unusable(f"init() of {path.name} failed: {_said(error)}") from error


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:500]
