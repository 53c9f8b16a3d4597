"""The studio's files: the page at every address, assets for good, and nothing from beside them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

import runyard.server.app  # noqa: F401  registers the form of paths
from runyard.server import studio_files


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FastAPI:
    built = tmp_path / "studio"
    (built / "assets").mkdir(parents=True)
    (built / "index.html").write_text("<!doctype html><title>studio</title>")
    (built / "assets" / "index-3f2a.js").write_text("export {}")
    (tmp_path / "secret.txt").write_text("not yours")
    (built / "link.txt").symlink_to(tmp_path / "secret.txt")
    monkeypatch.setattr(studio_files, "STUDIO_FOLDER", built)
    app = FastAPI()
    studio_files.install(app)
    return app


def get(app: FastAPI, path: str) -> tuple[int, dict[str, str], bytes]:
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()  # nobody says anything more, or hangs up
        raise AssertionError

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b""}
    asyncio.run(app({**scope, "headers": [], "server": ("yard", 80), "scheme": "http"}, receive, send))
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], headers, b"".join(message.get("body", b"") for message in sent[1:])


@pytest.mark.parametrize("path", ["/", "/runs", "/runs/digits_1/charts", "/compare", "/no/such/page.html"])
def test_the_page_is_at_every_address_of_its_own(app: FastAPI, path: str) -> None:
    status, headers, body = get(app, path)
    assert (status, body) == (200, b"<!doctype html><title>studio</title>")
    assert headers["content-type"] == "text/html; charset=utf-8"
    assert headers["cache-control"] == "no-cache"
    assert "script-src 'self';" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"


def test_assets_are_kept_for_good_and_those_that_are_gone_are_not_the_page(app: FastAPI) -> None:
    status, headers, body = get(app, "/assets/index-3f2a.js")
    assert (status, body) == (200, b"export {}")
    assert headers["content-type"].startswith("text/javascript")
    assert "immutable" in headers["cache-control"]
    assert get(app, "/assets/index-old.js")[0] == 404


@pytest.mark.parametrize("path", ["/../secret.txt", "/assets/../../secret.txt", "/link.txt", "//etc/passwd", "/a\0b"])
def test_nothing_beside_the_studio_is_given_away(app: FastAPI, path: str) -> None:
    assert get(app, path)[2] == b"<!doctype html><title>studio</title>" or get(app, path)[0] == 404


@pytest.mark.parametrize("path", ["/api", "/api/nothing"])
def test_an_address_of_the_api_that_is_none_is_an_error(app: FastAPI, path: str) -> None:
    assert get(app, path)[0] == 404


def test_a_studio_that_was_not_built_says_how(app: FastAPI) -> None:
    (studio_files.STUDIO_FOLDER / "index.html").unlink()
    status, _, body = get(app, "/runs")
    assert status == 200
    assert b"make ui" in body
