"""Security headers: every response has them, and no page loads anything from another server."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from runyard import Experiment, Workspace
from support import a_home

pytestmark = pytest.mark.real

HTML = b"<html><script src='https://evil.example/x.js'></script><script>alert(1)</script></html>"


class Reply(NamedTuple):
    status: int
    headers: Any
    body: bytes


class Browser:
    """Requests pages over TCP, signed in or not."""

    def __init__(self, address: dict[str, Any], token: str = "") -> None:
        self._url, self._token = address["url"].rstrip("/"), token

    def get(self, path: str, **headers: str) -> Reply:
        sign_in = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        request = urllib.request.Request(self._url + path, headers={"Accept": "text/html", **sign_in, **headers})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=20) as response:
                return Reply(response.status, response.headers, response.read())
        except urllib.error.HTTPError as error:
            return Reply(error.code, error.headers, error.read())


@pytest.fixture(scope="module")
def workspace_of_module() -> Iterator[Workspace]:
    with a_home() as home, pytest.MonkeyPatch.context() as patch:
        patch.setenv("RUNYARD_HOME", str(home))
        yield Workspace()


@pytest.fixture(scope="module")
def address(workspace_of_module: Workspace) -> dict[str, Any]:
    address: dict[str, Any] = workspace_of_module.connection.post("/api/studio", {})
    return address


def has_policy(reply: Reply) -> bool:
    policy = reply.headers["Content-Security-Policy"] or ""
    return (
        "default-src 'none'" in policy
        and "frame-ancestors 'none'" in policy
        and "https:" not in policy
        and "http:" not in policy
        and not re.search(r"script-src[^;]*'unsafe", policy)
        and reply.headers["X-Content-Type-Options"] == "nosniff"
        and reply.headers["Referrer-Policy"] == "no-referrer"
    )


def loads_from_elsewhere(reply: Reply) -> bool:
    return re.search(rb"""(src|href)=["']?(https?:)?//""", reply.body) is not None


def test_every_route_has_the_policy(workspace_of_module: Workspace, address: dict[str, Any]) -> None:
    paths = list(workspace_of_module.connection.get("/api/openapi.json")["paths"])
    paths = [re.sub(r"\{\w+\}", "nothing", path) for path in paths if path != "/api/live"]
    paths += ["/", "/runs/nothing", "/index.html", "/assets/nothing.js", "/redoc", "/docs", "/api/docs", "/api/redoc"]
    paths += [
        "/api/2.0/mlflow/runs/get",
        "/api/2.0/mlflow-artifacts/artifacts/nothing/x",
        "/api/3.0/mlflow/server-info",
    ]
    paths += ["/api", "/api/nothing", "/api/openapi.json", "/?token=wrong", "/%00", "/..%2f..%2fyard.db"]
    for browser in (Browser(address), Browser(address, address["token"])):
        for path in paths:
            reply = browser.get(path)
            assert reply.status < 500, (path, reply.body)
            assert has_policy(reply), (path, reply.status, dict(reply.headers))
            if "html" in (reply.headers["Content-Type"] or ""):
                assert not loads_from_elsewhere(reply), path


@pytest.mark.parametrize("path", ["/redoc", "/docs", "/api/docs", "/docs/oauth2-redirect"])
def test_no_page_displays_the_api_with_scripts_of_another_server(address: dict[str, Any], path: str) -> None:
    reply = Browser(address, address["token"]).get(path)
    assert b"cdn" not in reply.body.lower()
    assert b"swagger" not in reply.body.lower()
    assert b"redoc" not in reply.body.lower() or path.endswith("redoc")


def test_a_file_of_a_run_is_sandboxed_and_never_a_page(
    workspace_of_module: Workspace, address: dict[str, Any], tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    page.write_bytes(HTML)
    (tmp_path / "image.svg").write_bytes(b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>")
    with Experiment(workspace_of_module, "pages").start_logging(snapshot_directory=None) as run:
        run.upload_file("outputs/page.html", str(page))
        run.upload_file("outputs/image.svg", str(tmp_path / "image.svg"))
    browser = Browser(address, address["token"])
    files = [f"/api/runs/{run.id}/files/outputs/{name}" for name in ("page.html", "image.svg")]
    paths = [
        *files,
        *(f"{path}?inline=1" for path in files),
        f"/api/2.0/mlflow-artifacts/artifacts/{run.id}/outputs/page.html",
    ]
    for path in paths:
        reply = browser.get(path)
        assert reply.status == 200, path
        assert "html" not in reply.headers["Content-Type"]
        assert reply.headers["Content-Security-Policy"].startswith("sandbox;")
        assert has_policy(reply), path


def test_a_malformed_request_has_the_policy_or_is_not_html(address: dict[str, Any]) -> None:
    reply = Browser(address).get("/", Host="[::1")
    assert reply.status == 421
    assert has_policy(reply)
