"""Registered models: versions, files, aliases, stages, two of them side by side."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from runyard.errors import UserErrorException
from runyard.models.compare import compare
from runyard.models.files import uploaded_owner
from runyard.models.registry import Models, Users
from runyard.orchestrator.conductor import Conductor
from runyard.server.file_responses import file_response, zip_response
from runyard.server.responses import json_response
from runyard.spec.folder import HomeFolder
from runyard.store.models import Alias, ModelRecord
from runyard.tracking.artifacts import INCOMING
from runyard.wire.models import (
    AddLocalFile,
    AliasView,
    ChangeModel,
    ModelComparison,
    ModelEvent,
    ModelFile,
    ModelPage,
    ModelView,
    NamedModel,
    RegisterModel,
    SetAlias,
    SetStage,
)
from runyard.wire.runs import FileView

_AT_ONCE_BYTES = 4 << 20


def routes(conductor: Conductor, models: Models) -> APIRouter:
    router = APIRouter(tags=["models"])
    rooms = conductor.rooms

    @router.put("/model-uploads/{upload_id}/{name:any}", response_model=FileView)
    async def upload(upload_id: str, name: str, request: Request) -> Response:
        """The body is a file of a model that is about to be registered. It is kept whole or not at all."""
        owner = uploaded_owner(upload_id)
        handle, arrived = tempfile.mkstemp(prefix=INCOMING, dir=HomeFolder(rooms.home).artifacts)
        try:
            with open(handle, "wb") as file:
                waiting = bytearray()  # pieces come small, and each way to a thread costs more than it carries
                async for chunk in request.stream():
                    waiting += chunk
                    if len(waiting) >= _AT_ONCE_BYTES:
                        await run_in_threadpool(file.write, waiting)
                        waiting = bytearray()
                await run_in_threadpool(file.write, waiting)
            kept = await run_in_threadpool(rooms.artifacts.keep_file, owner, name, Path(arrived), move=True)
        except ClientDisconnect:
            return Response(status_code=499)  # nobody reads it
        finally:
            await run_in_threadpool(Path(arrived).unlink, missing_ok=True)
        return json_response(FileView(kept.path, kept.size))

    @router.post("/model-uploads/{upload_id}", response_model=FileView)
    def take(upload_id: str, request: AddLocalFile) -> Response:
        """As above, of a file of this machine: it is read where it is."""
        kept = rooms.artifacts.keep_file(uploaded_owner(upload_id), request.name, Path(request.source))
        return json_response(FileView(kept.path, kept.size))

    @router.post("/models", response_model=ModelView)
    def register(request: RegisterModel) -> Response:
        """The next version of a model, of files that were sent before or of files of a run."""
        return json_response(_view(models, models.register(request)))

    @router.get("/models", response_model=list[ModelView])
    def listing(
        name: str | None = None,
        run_id: str | None = None,
        framework: str | None = None,
        stage: str | None = None,
        tags: str | None = None,
        properties: str | None = None,
        dataset_id: str | None = None,
        latest: bool = False,
    ) -> Response:
        """By name, of each the newest version first. `tags` and `properties` are JSON objects; null asks for the key.

        `latest`: only the newest version of each name, among those that fit.
        """
        found = models.matching(
            name=name,
            run_id=run_id,
            framework=framework,
            stage=stage,
            tags=_labels(tags, "tags"),
            properties=_labels(properties, "properties"),
            dataset_id=dataset_id,
            latest=latest,
        )
        aliases, users = models.aliases(name), models.users()
        return json_response([_view(models, one, aliases.get(one.name, []), users) for one in found])

    @router.get("/models/{name}", response_model=NamedModel)
    def named(name: str) -> Response:
        models.get(name)  # an unknown name is an error, not an empty list
        aliases = models.aliases(name).get(name, [])
        users = models.users()
        versions = [_view(models, one, aliases, users) for one in models.matching(name=name)]
        told = [ModelEvent(**vars(deed)) for deed in models.history(name)]
        return json_response(NamedModel(name, versions, [AliasView(**vars(one)) for one in aliases], told))

    @router.get("/models/{name}/versions/{version}", response_model=ModelPage)
    def version_of(name: str, version: str) -> Response:
        """`version` is a number, an alias, or `latest`."""
        found = models.get(name, version)
        files = [ModelFile(file.path, file.size, file.digest) for file in models.files(name, found.version)]
        told = [ModelEvent(**vars(deed)) for deed in models.history(name, found.version)]
        return json_response(ModelPage(_view(models, found), found.environment_lock, files, told))

    @router.patch("/models/{name}/versions/{version}", response_model=ModelView)
    def change(name: str, version: str, request: ChangeModel) -> Response:
        """Description, tags, properties (written once), datasets, samples, resources."""
        return json_response(_view(models, models.change(name, models.get(name, version).version, request)))

    @router.delete("/models/{name}/versions/{version}", status_code=204)
    def delete(name: str, version: str, by: str | None = None) -> Response:
        """Refused while a service uses the version or an alias names it."""
        models.delete(name, models.get(name, version).version, by=by)
        return Response(status_code=204)

    @router.post("/models/{name}/versions/{version}/stage", response_model=ModelView)
    def stage(name: str, version: str, request: SetStage) -> Response:
        """`none`, `candidate`, `approved`, `rejected` or `archived`; who said so, and when, is kept."""
        number = models.get(name, version).version
        return json_response(
            _view(models, models.set_stage(name, number, request.stage, by=request.by, note=request.note))
        )

    @router.post("/models/{name}/aliases/{alias}", response_model=ModelView)
    def set_alias(name: str, alias: str, request: SetAlias) -> Response:
        """The alias is that version's alone from now on."""
        models.set_alias(name, alias, request.version, by=request.by)
        return json_response(_view(models, models.get(name, request.version)))

    @router.delete("/models/{name}/aliases/{alias}", status_code=204)
    def remove_alias(name: str, alias: str, by: str | None = None) -> Response:
        models.remove_alias(name, alias, by=by)
        return Response(status_code=204)

    @router.get("/models/{name}/versions/{version}/compare", response_model=ModelComparison)
    def comparison(name: str, version: str, other: str) -> Response:
        """This version on the left, `other` (`name:version`) on the right."""
        return json_response(compare(models, models.get(name, version), models.find(other)))

    @router.get("/models/{name}/versions/{version}/files.zip")
    def zipped(name: str, version: str) -> Response:
        found = models.get(name, version)
        paths = [file.path for file in models.files(name, found.version)]
        files = ((path, models.path_of(name, found.version, path)) for path in paths)
        return zip_response(files, f"{name}-{found.version}.zip")

    @router.get("/models/{name}/versions/{version}/files/{path:any}")
    def file(
        name: str,
        version: str,
        path: str,
        inline: bool = False,
        asked: Annotated[str | None, Header(alias="Range")] = None,
    ) -> Response:
        """The content, or a range of it; `inline=1` with a type that a browser shows and never runs."""
        place = models.path_of(name, models.get(name, version).version, path)
        return file_response(place, Path(path).name, asked_range=asked, inline=inline)

    return router


def _view(
    models: Models, model: ModelRecord, aliases: list[Alias] | None = None, users: Users | None = None
) -> ModelView:
    """``aliases`` of its name and all ``users``: asked for once where many are shown."""
    known = models.aliases(model.name).get(model.name, []) if aliases is None else aliases
    shown = {name: getattr(model, name) for name in ModelView.__dataclass_fields__ if name not in _ADDED}
    named = [one.alias for one in known if one.version == model.version]
    services = (models.users() if users is None else users).get((model.name, model.version), ())
    return ModelView(**shown, aliases=named, used_by=sorted(services))


_ADDED = ("aliases", "used_by")


def _labels(text: str | None, what: str) -> dict[str, str | None] | None:
    if text is None:
        return None
    try:
        labels: Any = json.loads(text)
    except ValueError as error:
        raise UserErrorException(f"{what} is not JSON: {error}", hint=f'such as {what}={{"area": "digits"}}') from error
    if not isinstance(labels, dict):
        raise UserErrorException(f"{what} must be a JSON object, not {text}")
    return labels
