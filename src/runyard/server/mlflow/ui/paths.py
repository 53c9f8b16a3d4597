"""Translates the paths that MLflow's page requests into those of the API, before authentication sees them.

The page is served below `/mlflow/` and requests paths relative to it. Behind a proxy that serves the page itself, the
same paths may arrive without this prefix.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
_App = Callable[[_Message, _Receive, _Send], Awaitable[None]]

PAGE = "/mlflow/"
_API = "/api/2.0/mlflow"
_FOLDERS = {
    "/ajax-api/2.0/mlflow/": "/api/2.0/mlflow/",
    "/ajax-api/3.0/mlflow/": "/api/3.0/mlflow/",
    "/ajax-api/2.0/mlflow-artifacts/": "/api/2.0/mlflow-artifacts/",
}
_FILES = ("/get-artifact", "/model-versions/get-artifact", "/graphql")


class MlflowPaths:
    """ASGI middleware; it must be outside of the one that authenticates."""

    def __init__(self, app: _App) -> None:
        self._app = app

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        if scope["type"] == "http":
            scope["path"] = api_path(scope["path"])
        await self._app(scope, receive, send)


def api_path(path: str) -> str:
    """The path of the API for a path of MLflow's page; other paths are returned unchanged."""
    inner = path[len(PAGE) - 1 :] if path.startswith(PAGE) else path
    if inner in _FILES:
        return _API + inner
    for folder, target in _FOLDERS.items():
        if inner.startswith(folder):
            return target + inner[len(folder) :]
    return path
