"""The studio: files that were built into the package, and its page for every address that is not the API's."""

from __future__ import annotations

import mimetypes
from pathlib import Path

from fastapi import FastAPI, Response
from fastapi.responses import FileResponse, HTMLResponse
from starlette.exceptions import HTTPException

BUILT = Path(__file__).parent / "studio"

# Nothing from elsewhere, no script in the page, no frame around it. Charts set styles on elements.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "media-src 'self' blob:; font-src 'self'; connect-src 'self'; manifest-src 'self'; worker-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_NOT_BUILT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Runyard</title></head>
<body><h1>The studio was not built</h1>
<p>This is a checkout of the source. <code>make ui</code> builds the studio; it needs Node 20.
Then load this page again.</p>
<p>The API is here: <a href="/api/health">/api/health</a>.</p></body></html>
"""

# the table of types of a machine may lack these, and a module of another type is not run
mimetypes.add_type("text/javascript", ".js")
mimetypes.add_type("text/css", ".css")
mimetypes.add_type("image/svg+xml", ".svg")
mimetypes.add_type("font/woff2", ".woff2")


def install(app: FastAPI) -> None:
    """Last of all: it answers at every address that nothing else has."""

    @app.get("/{path:any}", include_in_schema=False)
    def page(path: str) -> Response:
        if path == "api" or path.startswith("api/"):
            raise HTTPException(404)
        file = _file(path)
        if file is not None:
            # the names of assets change with their content
            age = "public, max-age=31536000, immutable" if path.startswith("assets/") else "no-cache"
            return FileResponse(file, headers={**_HEADERS, "Cache-Control": age})
        if path.startswith("assets/"):
            raise HTTPException(404)
        index = BUILT / "index.html"
        headers = {**_HEADERS, "Cache-Control": "no-cache"}
        if not index.is_file():
            return HTMLResponse(_NOT_BUILT, headers=headers)
        return FileResponse(index, headers=headers, media_type="text/html; charset=utf-8")


def _file(path: str) -> Path | None:
    if not path or "\0" in path:
        return None
    wanted = (BUILT / path).resolve()
    return wanted if wanted.is_relative_to(BUILT.resolve()) and wanted.is_file() else None
