"""Lookup of registered models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Union

from runyard.errors import WebserviceException
from runyard.sdk.core.labels import label_query

if TYPE_CHECKING:
    from runyard.sdk.core.workspace import Workspace


def find(
    workspace: Workspace,
    name: str | None,
    id: str | None,
    tags: list[Any] | None,
    properties: list[Any] | None,
    version: Union[int, str, None],
    run_id: str | None,
    framework: str | None,
) -> dict[str, Any]:
    if not name and not id:
        raise WebserviceException("a model needs a name or an id", hint="Model(ws, name='digits')")
    model_name, _, id_version = str(id or name).partition(":")
    selected = id_version or ("latest" if version is None else version)
    if (tags or properties or run_id or framework) and selected == "latest":
        views = query(workspace, model_name, tags, properties, run_id, framework, None, latest=True)
        if not views:
            raise WebserviceException(
                f"no version of the model {model_name!r} matches", hint="Model.list(ws, name=…) returns all versions"
            )
        return dict(views[0])
    view: dict[str, Any] = workspace.connection.get(f"/api/models/{model_name}/versions/{selected}")["model"]
    return view


def query(
    workspace: Workspace,
    name: str | None,
    tags: list[Any] | None,
    properties: list[Any] | None,
    run_id: str | None,
    framework: str | None,
    dataset_id: str | None,
    latest: bool,
) -> list[dict[str, Any]]:
    views: list[dict[str, Any]] = workspace.connection.get(
        "/api/models",
        name=name,
        tags=label_query(tags, "tags"),
        properties=label_query(properties, "properties"),
        run_id=run_id,
        framework=framework,
        dataset_id=dataset_id,
        latest=latest or None,
    )
    return views
