"""Authentication over TCP: the token, the session cookie, and cross-origin requests."""

from __future__ import annotations

import asyncio
import stat
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fastapi import FastAPI

from runyard.server.auth import TokenAuth, load_token, run_token

TOKEN = "a-token-that-cannot-be-guessed"
HOST = "127.0.0.1:8787"


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


@pytest.fixture
def auth() -> TokenAuth:
    app = FastAPI()
    app.get("/api/secret")(lambda: "the runs")
    app.post("/api/secret")(lambda: "changed")
    app.post("/api/studio")(lambda: "moved")
    app.get("/{path:path}")(lambda path: "the page")
    return TokenAuth(app, TOKEN, 8787, ["lab.example"])


def request(
    auth: TokenAuth, target: str, method: str = "GET", body: bytes = b"", host: str = HOST, **headers: str
) -> Reply:
    path, _, query = target.partition("?")
    pairs = {"host": host, **{name.replace("_", "-"): value for name, value in headers.items()}}
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in pairs.items()],
    }
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(auth(scope, receive, send))
    start = sent[0]
    content = b"".join(message.get("body", b"") for message in sent[1:])
    return Reply(start["status"], {k.decode(): v.decode() for k, v in start["headers"]}, content)


def session_cookie(reply: Reply) -> str:
    return reply.headers["set-cookie"].partition(";")[0]


def test_without_a_token_the_api_is_closed_with_a_hint(auth: TokenAuth) -> None:
    reply = request(auth, "/api/secret")
    assert reply.status == 401
    assert b"runyard studio" in reply.body
    assert request(auth, "/api/secret", authorization="Bearer wrong").status == 401
    assert request(auth, "/api/secret", authorization=f"Basic {TOKEN}").status == 401
    assert request(auth, "/api/secret", cookie="runyard_8787=wrong").status == 401
    assert request(auth, "/api/secret", cookie='runyard_8787="; \x7f').status == 401


def test_a_program_sends_the_token(auth: TokenAuth) -> None:
    reply = request(auth, "/api/secret", authorization=f"Bearer {TOKEN}")
    assert (reply.status, reply.body) == (200, b'"the runs"')


def test_the_script_of_a_run_sends_the_token_of_the_run(auth: TokenAuth) -> None:
    reply = request(auth, "/api/secret", authorization=f"Bearer {run_token(TOKEN, 'digits_1_a.b')}")
    assert (reply.status, reply.body) == (200, b'"the runs"')
    for wrong in (f"{TOKEN}.", f"{TOKEN}x", f"{TOKEN}xdigits", f"{TOKEN[:-1]}.digits", ".digits"):
        assert request(auth, "/api/secret", authorization=f"Bearer {wrong}").status == 401


def test_a_browser_exchanges_the_token_for_a_cookie(auth: TokenAuth) -> None:
    reply = request(auth, f"/runs?query=lr&token={TOKEN}")
    assert (reply.status, reply.headers["location"]) == (303, "/runs?query=lr")
    morsel = next(iter(SimpleCookie(reply.headers["set-cookie"]).values()))
    assert morsel["httponly"]
    assert morsel["samesite"] == "strict"
    assert TOKEN not in reply.headers["set-cookie"]
    assert request(auth, "/api/secret", cookie=session_cookie(reply)).status == 200


def test_a_wrong_token_in_the_url_sets_no_cookie(auth: TokenAuth) -> None:
    reply = request(auth, "/?token=wrong")
    assert reply.status == 303
    assert "set-cookie" not in reply.headers


def test_a_ticket_is_valid_once(auth: TokenAuth) -> None:
    ticket = auth.create_ticket()
    assert "set-cookie" in request(auth, f"/?token={ticket}").headers
    assert "set-cookie" not in request(auth, f"/?token={ticket}").headers
    assert request(auth, "/api/secret", authorization=f"Bearer {auth.create_ticket()}").status == 401


def test_the_redirect_stays_on_this_host(auth: TokenAuth) -> None:
    for path in ("//evil.example/x", "/\\evil.example", "///evil.example"):
        location = request(auth, f"{path}?token={TOKEN}").headers["location"]
        assert location.startswith("/")
        assert not location.startswith(("//", "/\\"))


def test_signing_in_with_a_form(auth: TokenAuth) -> None:
    reply = request(auth, "/api/sign-in", "POST", b'{"token": "%s"}' % TOKEN.encode())
    assert reply.status == 204
    assert request(auth, "/api/secret", cookie=session_cookie(reply)).status == 200
    for wrong in (b'{"token": "no"}', b"", b"[]", b'{"token": null}', b"x" * 10_000):
        assert request(auth, "/api/sign-in", "POST", wrong).status == 401


def test_the_page_itself_is_public(auth: TokenAuth) -> None:
    assert request(auth, "/runs/some-run").body == b'"the page"'


@pytest.mark.parametrize("host", ["127.0.0.1:8787", "localhost:8787", "[::1]:8787", "10.0.0.7", "LAB.example:80"])
def test_ip_addresses_and_configured_names_are_accepted(auth: TokenAuth, host: str) -> None:
    assert request(auth, "/", host=host).status == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8787", "127.0.0.1.evil.example", "", "lab.example.org"])
def test_foreign_host_names_are_rejected(auth: TokenAuth, host: str) -> None:
    assert request(auth, "/api/secret", host=host, authorization=f"Bearer {TOKEN}").status == 421
    assert request(auth, "/", host=host).status == 421


def test_a_page_of_another_origin_cannot_use_the_cookie(auth: TokenAuth) -> None:
    cookie = session_cookie(request(auth, f"/?token={TOKEN}"))
    same_origin = {"cookie": cookie, "origin": f"http://{HOST}", "sec_fetch_site": "same-origin"}
    assert request(auth, "/api/secret", "POST", **same_origin).status == 200
    assert request(auth, "/api/secret", "POST", cookie=cookie, origin="http://127.0.0.1:9999").status == 403
    assert request(auth, "/api/secret", "POST", cookie=cookie, origin="null").status == 403
    assert request(auth, "/api/secret", cookie=cookie, sec_fetch_site="same-site").status == 403
    assert request(auth, "/api/secret", cookie=cookie, sec_fetch_site="cross-site").status == 403


def test_the_listening_address_cannot_be_changed_over_tcp(auth: TokenAuth) -> None:
    assert request(auth, "/api/studio", "POST", authorization=f"Bearer {TOKEN}").status == 403


def test_the_token_is_created_once_and_private(tmp_path: Path) -> None:
    token = load_token(tmp_path)
    assert len(token) >= 40
    assert load_token(tmp_path) == token
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600
    (tmp_path / "token").unlink()
    assert load_token(tmp_path) != token
