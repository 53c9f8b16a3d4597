"""Serves the studio: its built files, and its page for every path outside the API."""

from __future__ import annotations

import mimetypes
from pathlib import Path

from fastapi import FastAPI, Response
from fastapi.responses import FileResponse, HTMLResponse
from starlette.exceptions import HTTPException

from runyard.server.security_headers import CONTENT_SECURITY_POLICY, PAGE_POLICY

STUDIO_FOLDER = Path(__file__).parent / "studio"

_HEADERS = {CONTENT_SECURITY_POLICY: PAGE_POLICY}
_NOT_BUILT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Runyard</title></head>
<body><h1>The studio was not built</h1>
<p>This is a checkout of the source. <code>make ui</code> builds the studio; it needs Node 20.
Then load this page again.</p>
<p>The API is here: <a href="/api/health">/api/health</a>.</p></body></html>
"""

# the type table of a machine may lack these, and browsers do not execute a module of another type
mimetypes.add_type("text/javascript", ".js")
mimetypes.add_type("text/css", ".css")
mimetypes.add_type("image/svg+xml", ".svg")
mimetypes.add_type("font/woff2", ".woff2")


def install(app: FastAPI) -> None:
    """Call it last: this route matches every path that no other route matches."""

    @app.get("/{path:any}", include_in_schema=False)
    def page(path: str) -> Response:
        if path == "api" or path.startswith("api/"):
            raise HTTPException(404)
        file = _file(path)
        if file is not None:
            # asset names contain a hash of their content
            caching = "public, max-age=31536000, immutable" if path.startswith("assets/") else "no-cache"
            return FileResponse(file, headers={**_HEADERS, "Cache-Control": caching})
        if path.startswith("assets/"):
            raise HTTPException(404)
        index = STUDIO_FOLDER / "index.html"
        headers = {**_HEADERS, "Cache-Control": "no-cache"}
        if not index.is_file():
            return HTMLResponse(_NOT_BUILT, headers=headers)
        return FileResponse(index, headers=headers, media_type="text/html; charset=utf-8")


def _file(path: str) -> Path | None:
    if not path or "\0" in path:
        return None
    file = (STUDIO_FOLDER / path).resolve()
    return file if file.is_relative_to(STUDIO_FOLDER.resolve()) and file.is_file() else None
