"""Images of the SDK before 2019: descriptions of services that are not deployed yet."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from runyard.server.responses import json_response
from runyard.serving.images import Images
from runyard.store.services import ImageRecord
from runyard.wire.services import ChangeImage, CreateImage


def routes(images: Images) -> APIRouter:
    router = APIRouter(tags=["services"])

    @router.get("/images")
    def all_images() -> Response:
        return json_response([_view(record) for record in images.store.all()])

    @router.post("/images")
    def create(request: CreateImage) -> Response:
        return json_response(_view(images.create(request)), 201)

    @router.get("/images/{name}")
    def image(name: str, version: int | None = None) -> Response:
        return json_response(_view(images.store.get(name, version)))

    @router.patch("/images/{name}/{version}")
    def change(name: str, version: int, request: ChangeImage) -> Response:
        return json_response(_view(images.change(name, version, request)))

    @router.delete("/images/{name}/{version}", status_code=204)
    def delete(name: str, version: int) -> Response:
        images.store.get(name, version)
        images.store.remove(name, version)
        return Response(status_code=204)

    return router


def _view(record: ImageRecord) -> dict[str, Any]:
    return {**vars(record), "models": [f"{name}:{version}" for name, version in record.models]}
