"""The studio's files: the page at every path, cached assets, and no files outside its folder."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

import runyard.server.app  # noqa: F401  registers the path convertor
from runyard.server import studio_files
from runyard.server.security_headers import SecurityHeaders


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
    messages: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()  # the client neither sends more nor disconnects
        raise AssertionError

    async def send(message: Any) -> None:
        messages.append(message)

    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b""}
    page = SecurityHeaders(app)
    asyncio.run(page({**scope, "headers": [], "server": ("yard", 80), "scheme": "http"}, receive, send))
    headers = {name.decode(): value.decode() for name, value in messages[0]["headers"]}
    return messages[0]["status"], headers, b"".join(message.get("body", b"") for message in messages[1:])


@pytest.mark.parametrize("path", ["/", "/runs", "/runs/digits_1/charts", "/compare", "/no/such/page.html"])
def test_the_page_is_served_at_every_path(app: FastAPI, path: str) -> None:
    status, headers, body = get(app, path)
    assert (status, body) == (200, b"<!doctype html><title>studio</title>")
    assert headers["content-type"] == "text/html; charset=utf-8"
    assert headers["cache-control"] == "no-cache"
    assert "script-src 'self';" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"


def test_assets_are_cached_and_missing_ones_are_not_found(app: FastAPI) -> None:
    status, headers, body = get(app, "/assets/index-3f2a.js")
    assert (status, body) == (200, b"export {}")
    assert headers["content-type"].startswith("text/javascript")
    assert "immutable" in headers["cache-control"]
    assert get(app, "/assets/index-old.js")[0] == 404


@pytest.mark.parametrize("path", ["/../secret.txt", "/assets/../../secret.txt", "/link.txt", "//etc/passwd", "/a\0b"])
def test_files_outside_the_studio_folder_are_not_served(app: FastAPI, path: str) -> None:
    assert get(app, path)[2] == b"<!doctype html><title>studio</title>" or get(app, path)[0] == 404


@pytest.mark.parametrize("path", ["/api", "/api/nothing"])
def test_an_unknown_api_path_is_not_found(app: FastAPI, path: str) -> None:
    assert get(app, path)[0] == 404


def test_without_a_build_the_page_explains_how_to_build(app: FastAPI) -> None:
    (studio_files.STUDIO_FOLDER / "index.html").unlink()
    status, _, body = get(app, "/runs")
    assert status == 200
    assert b"make ui" in body
