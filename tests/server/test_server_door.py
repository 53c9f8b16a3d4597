"""Who comes over the network: the token, the cookie that it becomes, and pages of others that try to use it."""

from __future__ import annotations

import asyncio
import stat
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fastapi import FastAPI

from runyard.server.auth import Door, token_of

TOKEN = "a-token-that-nobody-guesses"
HOST = "127.0.0.1:8787"


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


@pytest.fixture
def door() -> Door:
    app = FastAPI()
    app.get("/api/secret")(lambda: "the runs")
    app.post("/api/secret")(lambda: "changed")
    app.post("/api/studio")(lambda: "moved")
    app.get("/{path:path}")(lambda path: "the page")
    return Door(app, TOKEN, 8787, ["lab.example"])


def ask(door: Door, target: str, method: str = "GET", body: bytes = b"", host: str = HOST, **headers: str) -> Answer:
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

    asyncio.run(door(scope, receive, send))
    start = sent[0]
    content = b"".join(message.get("body", b"") for message in sent[1:])
    return Answer(start["status"], {k.decode(): v.decode() for k, v in start["headers"]}, content)


def cookie_of(answer: Answer) -> str:
    return answer.headers["set-cookie"].partition(";")[0]


def test_without_a_token_the_api_is_closed_and_says_what_to_do(door: Door) -> None:
    answer = ask(door, "/api/secret")
    assert answer.status == 401
    assert b"runyard studio" in answer.body
    assert ask(door, "/api/secret", authorization="Bearer wrong").status == 401
    assert ask(door, "/api/secret", authorization=f"Basic {TOKEN}").status == 401
    assert ask(door, "/api/secret", cookie="runyard_8787=wrong").status == 401
    assert ask(door, "/api/secret", cookie='runyard_8787="; \x7f').status == 401


def test_a_program_sends_the_token(door: Door) -> None:
    answer = ask(door, "/api/secret", authorization=f"Bearer {TOKEN}")
    assert (answer.status, answer.body) == (200, b'"the runs"')


def test_a_browser_comes_with_the_token_once_and_then_with_a_cookie(door: Door) -> None:
    answer = ask(door, f"/runs?query=lr&token={TOKEN}")
    assert (answer.status, answer.headers["location"]) == (303, "/runs?query=lr")
    morsel = next(iter(SimpleCookie(answer.headers["set-cookie"]).values()))
    assert morsel["httponly"]
    assert morsel["samesite"] == "strict"
    assert TOKEN not in answer.headers["set-cookie"]
    assert ask(door, "/api/secret", cookie=cookie_of(answer)).status == 200


def test_a_wrong_token_in_the_address_signs_nobody_in(door: Door) -> None:
    answer = ask(door, "/?token=wrong")
    assert answer.status == 303
    assert "set-cookie" not in answer.headers


def test_a_ticket_opens_the_door_once(door: Door) -> None:
    ticket = door.ticket()
    assert "set-cookie" in ask(door, f"/?token={ticket}").headers
    assert "set-cookie" not in ask(door, f"/?token={ticket}").headers
    assert ask(door, "/api/secret", authorization=f"Bearer {door.ticket()}").status == 401


def test_the_redirect_stays_at_home(door: Door) -> None:
    for odd in ("//evil.example/x", "/\\evil.example", "///evil.example"):
        location = ask(door, f"{odd}?token={TOKEN}").headers["location"]
        assert location.startswith("/")
        assert not location.startswith(("//", "/\\"))


def test_a_form_signs_in_too(door: Door) -> None:
    answer = ask(door, "/api/sign-in", "POST", b'{"token": "%s"}' % TOKEN.encode())
    assert answer.status == 204
    assert ask(door, "/api/secret", cookie=cookie_of(answer)).status == 200
    for wrong in (b'{"token": "no"}', b"", b"[]", b'{"token": null}', b"x" * 10_000):
        assert ask(door, "/api/sign-in", "POST", wrong).status == 401


def test_the_page_itself_is_no_secret(door: Door) -> None:
    assert ask(door, "/runs/some-run").body == b'"the page"'


@pytest.mark.parametrize("host", ["127.0.0.1:8787", "localhost:8787", "[::1]:8787", "10.0.0.7", "LAB.example:80"])
def test_it_answers_to_addresses_and_to_its_own_names(door: Door, host: str) -> None:
    assert ask(door, "/", host=host).status == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8787", "127.0.0.1.evil.example", "", "lab.example.org"])
def test_a_name_that_leads_here_by_somebody_elses_doing_is_refused(door: Door, host: str) -> None:
    assert ask(door, "/api/secret", host=host, authorization=f"Bearer {TOKEN}").status == 421
    assert ask(door, "/", host=host).status == 421


def test_a_page_of_another_site_or_port_cannot_use_the_cookie(door: Door) -> None:
    cookie = cookie_of(ask(door, f"/?token={TOKEN}"))
    own = {"cookie": cookie, "origin": f"http://{HOST}", "sec_fetch_site": "same-origin"}
    assert ask(door, "/api/secret", "POST", **own).status == 200
    assert ask(door, "/api/secret", "POST", cookie=cookie, origin="http://127.0.0.1:9999").status == 403
    assert ask(door, "/api/secret", "POST", cookie=cookie, origin="null").status == 403
    assert ask(door, "/api/secret", cookie=cookie, sec_fetch_site="same-site").status == 403
    assert ask(door, "/api/secret", cookie=cookie, sec_fetch_site="cross-site").status == 403


def test_where_the_yard_listens_is_the_owners_to_say(door: Door) -> None:
    assert ask(door, "/api/studio", "POST", authorization=f"Bearer {TOKEN}").status == 403


def test_the_token_is_made_once_and_is_the_owners_alone(tmp_path: Path) -> None:
    token = token_of(tmp_path)
    assert len(token) >= 40
    assert token_of(tmp_path) == token
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600
    (tmp_path / "token").unlink()
    assert token_of(tmp_path) != token
