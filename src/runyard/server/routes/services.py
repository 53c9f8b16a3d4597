"""Web services: deploy, update, invoke, monitor, delete."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from fastapi import APIRouter, Response
from starlette.concurrency import run_in_threadpool

from runyard import clock
from runyard.errors import WebserviceException
from runyard.server.responses import json_response
from runyard.server.service_proxy import invoke as invoke_service
from runyard.serving.history import stats
from runyard.serving.logs import last_lines, last_requests
from runyard.serving.manager import ServiceManager
from runyard.store.services import ServiceRecord, VersionRecord
from runyard.wire.services import ChangeService, DeployService, Invocation, NewKey, NewVersion

_MAX_WAIT_S = 30.0


def routes(services: ServiceManager) -> APIRouter:
    router = APIRouter(tags=["services"])

    @router.get("/services")
    def all_services(model: str | None = None) -> Response:
        """List services; `model` selects those that serve `name` or `name:version`."""
        views = [service_view(services, record) for record in services.store.all()]
        return json_response([view for view in views if model is None or _serves(view, model)])

    @router.post("/services")
    def deploy(request: DeployService) -> Response:
        """Deploy a service. Returns immediately; the service's `state` shows when it is ready."""
        return json_response(service_view(services, services.deploy(request)), 201)

    @router.get("/services/{name}")
    async def service(name: str, after: int | None = None, wait_s: float = 20.0) -> Response:
        """Return a service. With `after`, the `change` of an earlier response, wait up to `wait_s` for a change."""
        record = await run_in_threadpool(services.store.get, name)
        if after is not None:
            deadline = clock.monotonic() + min(wait_s, _MAX_WAIT_S)
            while services.change_number <= after and clock.monotonic() < deadline:
                await asyncio.sleep(0.02)  # blocking a thread per waiting client would exhaust the pool
            record = await run_in_threadpool(services.store.get, name)
        return json_response(await run_in_threadpool(service_view, services, record))

    @router.patch("/services/{name}")
    def change(name: str, request: ChangeService) -> Response:
        return json_response(service_view(services, services.change(name, request)))

    @router.delete("/services/{name}", status_code=204)
    def delete(name: str) -> Response:
        services.delete(name)
        return Response(status_code=204)

    @router.post("/services/{name}/versions")
    def add_version(name: str, request: NewVersion) -> Response:
        services.add_version(name, request)
        return json_response(service_view(services, services.store.get(name)), 201)

    @router.post("/services/{name}/traffic")
    def set_traffic(name: str, request: dict[str, int]) -> Response:
        """Set the traffic shares in percent, such as `{"1": 90, "2": 10}`. A version without traffic is stopped."""
        return json_response(service_view(services, services.set_traffic(name, request)))

    @router.get("/services/{name}/keys")
    def keys(name: str) -> Response:
        primary, secondary = services.keys(name)
        return json_response({"primary": primary, "secondary": secondary})

    @router.post("/services/{name}/keys")
    def set_key(name: str, request: NewKey) -> Response:
        primary, secondary = services.set_key(name, request.which, request.value)
        return json_response({"primary": primary, "secondary": secondary})

    @router.get("/services/{name}/logs")
    def logs(name: str, lines: int = 5000) -> Response:
        services.store.get(name)
        return json_response({"text": last_lines(services.supervisor(name).folder, lines)})

    @router.get("/services/{name}/requests")
    def requests(name: str, limit: int = 100) -> Response:
        """List the last requests, newest first."""
        services.store.get(name)
        return json_response(last_requests(services.supervisor(name).folder, min(limit, 10_000)))

    @router.get("/services/{name}/stats")
    def statistics(name: str) -> Response:
        """Return the totals since the service was created, and one point per second of the last five minutes."""
        services.store.get(name)
        folder = services.supervisor(name).folder
        return json_response({**stats(folder.counts), "history": services.history.points(name)})

    @router.get("/services/{name}/openapi")
    def openapi(name: str) -> Response:
        record = services.store.get(name)
        folder = services.supervisor(name).folder
        for version in sorted(record.traffic, key=lambda number: -record.traffic[number]):
            path = folder.openapi(int(version))
            if path.exists():
                return json_response(json.loads(path.read_bytes()))
        raise WebserviceException(f"the service {name!r} is not ready yet")

    @router.post("/services/{name}/invoke")
    def invoke(name: str, request: Invocation) -> Response:
        """Send the body to the service with its key, so that signed-in users can try it without the key."""
        services.store.get(name)
        return json_response(invoke_service(services.supervisor(name), request.body))

    return router


def service_view(services: ServiceManager, record: ServiceRecord) -> dict[str, Any]:
    supervisor = services.supervisor(record.name)
    status_report = supervisor.status()
    change_number = services.change_number  # read before the state: a change after this is reported again
    configuration = record.configuration
    address = f"http://{_url_host(configuration['host'])}:{configuration['port']}"
    return {
        "name": record.name,
        "kind": record.kind,
        "state": services.state(record, status_report),
        "error": record.error,
        "doing": services.activities.get(record.name, ""),
        "configuration": configuration,
        "description": record.description,
        "tags": record.tags,
        "properties": record.properties,
        "traffic": record.traffic,
        "scoring_uri": f"{address}/score",
        "swagger_uri": f"{address}/swagger.json",
        "created_by": record.created_by,
        "created_at": record.created_at,
        "changed_at": record.changed_at,
        "change": change_number,
        "lately": services.history.recent(record.name),
        "versions": [_version_view(version, status_report, record) for version in services.store.versions(record.name)],
    }


def _version_view(version: VersionRecord, status_report: dict[str, Any], record: ServiceRecord) -> dict[str, Any]:
    status = status_report.get("versions", {}).get(str(version.version), {})
    return {
        "version": version.version,
        "state": version.state,
        "error": version.error,
        "models": [f"{name}:{number}" for name, number in version.models],
        "traffic": record.traffic.get(str(version.version), 0),
        "entry_script": version.spec.get("entry_script") or "",
        "snapshot_id": version.spec.get("snapshot_id"),
        "environment_key": version.environment_key,
        "created_at": version.created_at,
        "workers": status.get("workers", []),
    }


def _serves(service: dict[str, Any], model: str) -> bool:
    models = [name for version in service["versions"] if version["traffic"] for name in version["models"]]
    return any(model in (name, name.rpartition(":")[0]) for name in models)


def _url_host(host: str) -> str:
    wildcards = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}
    return wildcards.get(host, f"[{host}]" if ":" in host else host)
