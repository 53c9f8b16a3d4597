"""Token authentication of requests over TCP. The unix socket needs none: file permissions protect it.

A browser opens `/?token=…` once and receives a cookie, so that the token stays neither in the address bar nor in the
history. Programs send `Authorization: Bearer …`. The script of a run has its own token with the same access, so that
the yard knows which run sent a request.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import socket
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import orjson
from fastapi import Response

from runyard import clock
from runyard.posix.atomic_write import write_text
from runyard.server.error_handlers import error_response
from runyard.server.mlflow import errors as mlflow_errors
from runyard.server.mlflow.errors import PERMISSION_DENIED, UNAUTHENTICATED, MlflowError
from runyard.spec.folder import HomeFolder

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
_App = Callable[[_Message, _Receive, _Send], Awaitable[None]]

CALLING_RUN = "runyard.calling_run"  # in the scope: the id of the run whose script sent the request
ON_AUTHENTICATED = "runyard.on_authenticated"  # in the scope's state: called with the first authenticated request

_COOKIE_S = 30 * 24 * 3600
_TICKET_S = 60.0
_PUBLIC_PATHS = ("/api/sign-in",)
_OWNER_PATHS = ("/api/studio",)  # clients over TCP must not change the address that the yard listens on
_MLFLOW_PATHS = ("/api/2.0/mlflow", "/api/3.0/mlflow")
_MAX_SIGN_IN_BYTES = 4096


def load_token(home: Path) -> str:
    """Load the token, which only the owner can read; create it if it does not exist. Deleting it signs everyone out."""
    path = HomeFolder(home).token
    token = path.read_text(encoding="ascii").strip() if path.exists() else ""
    if not token:
        token = secrets.token_urlsafe(32)
        write_text(path, f"{token}\n")
    return token


def run_token(token: str, run_id: str) -> str:
    """The token for the script of a run."""
    return f"{token}.{run_id}"


class TokenAuth:
    """ASGI middleware for one TCP address; ``names`` are the host names that requests may use."""

    def __init__(self, app: _App, token: str, port: int, names: Iterable[str] = ()) -> None:
        self._app, self._token = app, token
        # cookies ignore ports: two yards on one machine must not overwrite each other's sessions
        self._cookie = f"runyard_{port}"
        self._session = hmac.new(token.encode(), b"runyard session", hashlib.sha256).hexdigest()
        self._tickets: dict[str, float] = {}
        self._names = {name.lower() for name in (*names, "localhost", socket.gethostname(), socket.getfqdn())}

    def create_ticket(self) -> str:
        """Create a token that is valid once, for one minute: for URLs that other users of the machine may see."""
        now = clock.monotonic()
        self._tickets = {ticket: until for ticket, until in self._tickets.items() if until > now}
        ticket = secrets.token_urlsafe(24)
        self._tickets[ticket] = now + _TICKET_S
        return ticket

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        if scope["type"] != "http":
            return
        response = await self._authenticate(scope, receive)
        if response is not None and response.status_code >= 400:
            response.headers["Connection"] = "close"  # do not read the rest of a request that was refused
        await (response or self._app)(scope, receive, send)

    async def _authenticate(self, scope: _Message, receive: _Receive) -> Response | None:
        """Return the response to a rejected or sign-in request; None lets the request pass."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get("host", "")
        if not self._accepts_host(host):
            return error_response(
                421,
                "UserErrorException",
                f"unknown host name {host!r}",
                "use the yard's address, or start it with `runyard server --name NAME`",
            )
        path: str = scope["path"]
        if scope["method"] == "GET" and not path.startswith("/api/"):
            return self._sign_in_by_link(scope)  # the page itself is public; its data is not
        if path in _PUBLIC_PATHS and scope["method"] == "POST":
            return await self._sign_in(receive)
        token = _bearer_token(headers)
        if self._is_token(token):
            pass
        elif (run_id := self._calling_run(token)) is not None:
            scope[CALLING_RUN] = run_id
        elif not self._has_cookie(headers):
            hint = "`runyard studio` opens a signed-in page; programs send `Authorization: Bearer TOKEN`"
            if path.startswith(_MLFLOW_PATHS):  # MLflow's clients report an error in another format as an internal one
                hint = "set MLFLOW_TRACKING_TOKEN to the content of the file `token` in the yard's home folder"
                return mlflow_errors.error_response(MlflowError(UNAUTHENTICATED, "authentication required", hint=hint))
            return error_response(401, "UserErrorException", "authentication required", hint)
        elif not _is_same_origin(headers, host):
            # browsers treat another port of this machine as the same site, and would send the cookie
            message = "cross-origin requests are not allowed"
            if path.startswith(_MLFLOW_PATHS):
                return mlflow_errors.error_response(MlflowError(PERMISSION_DENIED, message))
            return error_response(403, "UserErrorException", message)
        scope.get("state", {}).get(ON_AUTHENTICATED, _ignore)()
        if path in _OWNER_PATHS:
            return error_response(403, "UserErrorException", f"{path} is available over the yard's unix socket only")
        return None

    def _accepts_host(self, host: str) -> bool:
        """Prevent DNS rebinding: with a foreign name that resolves here, a foreign page would be of the same origin."""
        name = _host_name(host)
        try:
            ipaddress.ip_address(name)
            return True
        except ValueError:
            return name.lower() in self._names

    def _sign_in_by_link(self, scope: _Message) -> Response | None:
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        tokens = [value for name, value in query if name == "token"]
        if not tokens:
            return None
        rest = urlencode([pair for pair in query if pair[0] != "token"])
        # a path that begins with two slashes would redirect to another host
        location = "/" + str(scope["path"]).lstrip("/\\") + (f"?{rest}" if rest else "")
        headers = {"Location": location, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
        response = Response(status_code=303, headers=headers)
        if self._is_token(tokens[-1]) or self._tickets.pop(tokens[-1], 0.0) > clock.monotonic():
            self._set_cookie(response)
        return response

    async def _sign_in(self, receive: _Receive) -> Response:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body") or len(body) > _MAX_SIGN_IN_BYTES:
                break
        try:
            token = orjson.loads(body[:_MAX_SIGN_IN_BYTES]).get("token", "")
        except (ValueError, AttributeError):
            token = ""
        if not self._is_token(str(token)):
            return error_response(401, "UserErrorException", "invalid token", "it is in the yard's home folder")
        response = Response(status_code=204)
        self._set_cookie(response)
        return response

    def _set_cookie(self, response: Response) -> None:
        response.set_cookie(self._cookie, self._session, max_age=_COOKIE_S, httponly=True, samesite="strict", path="/")

    def _calling_run(self, text: str) -> str | None:
        """The id of the run that has this token; None if it is not the token of a run."""
        token, run_id = text[: len(self._token)], text[len(run_token(self._token, "")) :]
        return run_id if run_id and self._is_token(token) and text == run_token(token, run_id) else None

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self._token.encode())

    def _has_cookie(self, headers: dict[str, str]) -> bool:
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return False
        return cookie is not None and hmac.compare_digest(cookie.value.encode(), self._session.encode())


def _bearer_token(headers: dict[str, str]) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _is_same_origin(headers: dict[str, str], host: str) -> bool:
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = headers.get("origin")
    return origin is None or origin.lower() in (f"http://{host.lower()}", f"https://{host.lower()}")


def _host_name(host: str) -> str:
    """The name or address in a `Host` header; empty if it is malformed."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _ignore() -> None:
    """For servers that do not count unauthenticated connections."""
