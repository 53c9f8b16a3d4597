"""The door to the network: who comes over TCP shows a token. The unix socket has no door; its owner is the key.

A browser comes once with `/?token=…` and gets a cookie for it, so that the token stays neither in the address nor
in the history. Programs send it as `Authorization: Bearer …`.
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
from runyard.server.error_handlers import problem
from runyard.spec.folder import HomeFolder

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
_App = Callable[[_Message, _Receive, _Send], Awaitable[None]]

_COOKIE_S = 30 * 24 * 3600
_TICKET_S = 60.0
_OPEN = ("/api/sign-in",)
_OWNERS_ALONE = ("/api/studio",)  # where the yard listens is not for those to say who came in from there
_LARGEST_SIGN_IN = 4096


def token_of(home: Path) -> str:
    """Made once; whoever can read the file can use the yard, and that is its owner. Removing it signs everybody out."""
    path = HomeFolder(home).token
    try:
        known = path.read_text(encoding="ascii").strip()
        if known:
            return known
    except FileNotFoundError:
        pass
    fresh = path.with_name("token.new")
    fresh.touch(mode=0o600)
    fresh.write_text(secrets.token_urlsafe(32) + "\n", encoding="ascii")
    fresh.replace(path)
    return path.read_text(encoding="ascii").strip()


class Door:
    """Around the application, for one address. ``names`` are the host names by which it may be called."""

    def __init__(self, app: _App, token: str, port: int, names: Iterable[str] = ()) -> None:
        self._app, self._token = app, token
        # cookies know no ports: two yards on one machine must not sign each other's people out
        self._cookie = f"runyard_{port}"
        self._session = hmac.new(token.encode(), b"runyard session", hashlib.sha256).hexdigest()
        self._tickets: dict[str, float] = {}
        self._names = {name.lower() for name in (*names, "localhost", socket.gethostname(), socket.getfqdn())}

    def ticket(self) -> str:
        """Opens the door once, within a minute: for an address that others may see."""
        now = clock.monotonic()
        self._tickets = {ticket: until for ticket, until in self._tickets.items() if until > now}
        fresh = secrets.token_urlsafe(24)
        self._tickets[fresh] = now + _TICKET_S
        return fresh

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        if scope["type"] != "http":
            return
        answer = await self._refusal(scope, receive)
        await (answer or self._app)(scope, receive, send)

    async def _refusal(self, scope: _Message, receive: _Receive) -> Response | None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get("host", "")
        if not self._is_called(host):
            return problem(
                421,
                "UserErrorException",
                f"this yard is not called {host!r}",
                "use its address, or start it with `runyard server --name NAME`",
            )
        path: str = scope["path"]
        if scope["method"] == "GET" and not path.startswith("/api/"):
            return self._signed_in_by_link(scope)  # the page itself is no secret; what it shows is
        if path in _OPEN and scope["method"] == "POST":
            return await self._sign_in(receive, headers)
        if self._has_token(headers):
            pass
        elif not self._has_cookie(headers):
            return problem(
                401,
                "UserErrorException",
                "this yard asks for its token",
                "`runyard studio` opens a signed-in page; programs send `Authorization: Bearer TOKEN`",
            )
        elif not _is_from_own_page(headers, host):
            # a page of another port of this machine is "the same site" to a browser, and would bring the cookie
            return problem(403, "UserErrorException", "this request comes from another site's page")
        if path in _OWNERS_ALONE:
            return problem(403, "UserErrorException", f"{path} is for the yard's owner alone, over its socket")
        return None

    def _is_called(self, host: str) -> bool:
        """A name that somebody else made to lead here must not: their page would be of the same origin as ours."""
        name = urlsplit(f"//{host}").hostname or ""
        try:
            ipaddress.ip_address(name)
            return True
        except ValueError:
            return name.lower() in self._names

    def _signed_in_by_link(self, scope: _Message) -> Response | None:
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for name, value in query if name == "token"]
        if not given:
            return None
        rest = urlencode([pair for pair in query if pair[0] != "token"])
        # a path that begins with two slashes would be another host's address
        where = "/" + str(scope["path"]).lstrip("/\\") + (f"?{rest}" if rest else "")
        headers = {"Location": where, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
        answer = Response(status_code=303, headers=headers)
        if self._is_token(given[-1]) or self._tickets.pop(given[-1], 0.0) > clock.monotonic():
            self._set_cookie(answer)
        return answer

    async def _sign_in(self, receive: _Receive, headers: dict[str, str]) -> Response:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body") or len(body) > _LARGEST_SIGN_IN:
                break
        try:
            given = orjson.loads(body[:_LARGEST_SIGN_IN]).get("token", "")
        except (ValueError, AttributeError):
            given = ""
        if not self._is_token(str(given)):
            return problem(401, "UserErrorException", "that is not the token of this yard", "it is in its home folder")
        answer = Response(status_code=204)
        self._set_cookie(answer)
        return answer

    def _set_cookie(self, answer: Response) -> None:
        answer.set_cookie(self._cookie, self._session, max_age=_COOKIE_S, httponly=True, samesite="strict", path="/")

    def _has_token(self, headers: dict[str, str]) -> bool:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self._is_token(given.strip())

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())

    def _has_cookie(self, headers: dict[str, str]) -> bool:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return False
        return found is not None and hmac.compare_digest(found.value.encode(), self._session.encode())


def _is_from_own_page(headers: dict[str, str], host: str) -> bool:
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc.lower() == host.lower()
