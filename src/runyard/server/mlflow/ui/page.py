"""MLflow's own web page, from a package `mlflow` on this machine; Runyard does not contain it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from fastapi import FastAPI, Response
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse
from starlette.exceptions import HTTPException

from runyard.server.mlflow.ui.paths import PAGE
from runyard.server.security_headers import CONTENT_SECURITY_POLICY
from runyard.spec.folder import HomeFolder

# The page has the session of the signed-in user: no content from other origins, and no scripts inside of artifacts.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "media-src 'self' blob:; font-src 'self' data:; connect-src 'self' data: blob:; manifest-src 'self'; "
    "worker-src 'self' blob:; frame-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
_BUILD = Path("mlflow", "server", "js", "build")
_MISSING = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>MLflow</title></head>
<body><h1>MLflow's page is not installed</h1>
<p>The yard serves it from the package <code>mlflow</code>. This command downloads the package without its dependencies,
and runs nothing of it:</p>
<pre>pip install --no-deps --target {folder} mlflow</pre>
<p>Then load this page again. <a href="/">The studio</a> shows the same runs.</p></body></html>
"""


def install(app: FastAPI, home: Path) -> None:
    """Call it before the studio's routes, which match every path."""

    @app.get(PAGE.rstrip("/"), include_in_schema=False)
    def redirect() -> Response:
        return RedirectResponse(PAGE)

    @app.get(PAGE, include_in_schema=False)
    def index() -> Response:
        folder = _page_folder(home)
        if folder is None:
            return HTMLResponse(_MISSING.format(folder=HomeFolder(home).mlflow_page), 404)
        headers = {CONTENT_SECURITY_POLICY: _POLICY, "Cache-Control": "no-cache"}
        return FileResponse(folder / "index.html", headers=headers, media_type="text/html; charset=utf-8")

    @app.get(f"{PAGE}static-files/{{path:any}}", include_in_schema=False)
    def static_file(path: str) -> Response:
        folder = _page_folder(home)
        file = None if folder is None or "\0" in path else (folder / path).resolve()
        if folder is None or file is None or not file.is_relative_to(folder.resolve()) or not file.is_file():
            raise HTTPException(404)
        # asset names contain a hash of their content
        caching = "public, max-age=31536000, immutable" if path.startswith("static/") else "no-cache"
        return FileResponse(file, headers={CONTENT_SECURITY_POLICY: _POLICY, "Cache-Control": caching})


def _page_folder(home: Path) -> Path | None:
    """The folder in the home folder, or the one of a complete `mlflow` next to the yard; `mlflow-skinny` has none."""
    candidates = [HomeFolder(home).mlflow_page / _BUILD]
    package = importlib.util.find_spec("mlflow")
    if package is not None and package.origin is not None:
        candidates.append(Path(package.origin).parents[1] / _BUILD)
    return next((folder for folder in candidates if (folder / "index.html").is_file()), None)
