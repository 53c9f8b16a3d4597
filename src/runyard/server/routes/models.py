"""Registered models: versions, files, aliases, stages, comparison of two versions."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, Request, Response

from runyard.models.compare import compare
from runyard.models.files import upload_owner
from runyard.models.registry import Models, Users
from runyard.orchestrator.conductor import Conductor
from runyard.server.file_responses import file_response, zip_response
from runyard.server.parameters import local_path, parse_object
from runyard.server.responses import json_response
from runyard.server.uploads import CLIENT_CLOSED_REQUEST, store_upload
from runyard.store.models import Alias, ModelRecord
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


def routes(conductor: Conductor, models: Models) -> APIRouter:
    router = APIRouter(tags=["models"])
    components = conductor.components

    @router.put("/model-uploads/{upload_id}/{name:any}", response_model=FileView)
    async def upload(upload_id: str, name: str, request: Request) -> Response:
        """Store the body as a file of a model that is about to be registered, completely or not at all."""
        stored = await store_upload(request, components.home, components.artifacts, upload_owner(upload_id), name)
        if stored is None:
            return Response(status_code=CLIENT_CLOSED_REQUEST)
        return json_response(FileView(stored.path, stored.size))

    @router.post("/model-uploads/{upload_id}", response_model=FileView)
    def add_local_file(upload_id: str, request: AddLocalFile) -> Response:
        """Store a file of the yard's machine, without an upload."""
        source = local_path(request.source, "source")
        stored = components.artifacts.store_file(upload_owner(upload_id), request.name, source)
        return json_response(FileView(stored.path, stored.size))

    @router.post("/models", response_model=ModelView)
    def register(request: RegisterModel) -> Response:
        """Register the next version of a model, from uploaded files or files of a run."""
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
        """List versions by name, newest first. `tags` and `properties` are JSON objects; null matches every value.

        `latest` selects only the newest matching version of each name.
        """
        name = name and models.resolve(name)
        versions = models.search(
            name=name,
            run_id=run_id,
            framework=framework,
            stage=stage,
            tags=parse_object(tags, "tags"),
            properties=parse_object(properties, "properties"),
            dataset_id=dataset_id,
            latest=latest,
        )
        aliases, users = models.aliases(name), models.users()
        return json_response([_view(models, model, aliases.get(model.name, []), users) for model in versions])

    @router.get("/models/{name}", response_model=NamedModel)
    def named(name: str) -> Response:
        name = models.get(models.resolve(name)).name  # raises if the name is unknown
        aliases = models.aliases(name).get(name, [])
        users = models.users()
        versions = [_view(models, model, aliases, users) for model in models.search(name=name)]
        history = [ModelEvent(**vars(event)) for event in models.history(name)]
        record = models.name_record(name)
        views = [AliasView(**vars(alias)) for alias in aliases]
        return json_response(NamedModel(name, versions, views, history, record.title, record.description, record.tags))

    @router.get("/models/{name}/versions/{version}", response_model=ModelPage)
    def version_of(name: str, version: str) -> Response:
        """Return one version; `version` is a number, an alias, or `latest`."""
        model = models.get(models.resolve(name), version)
        files = [ModelFile(file.path, file.size, file.digest) for file in models.files(model.name, model.version)]
        history = [ModelEvent(**vars(event)) for event in models.history(model.name, model.version)]
        title = models.name_record(model.name).title
        return json_response(ModelPage(_view(models, model), model.environment_lock, files, history, title))

    @router.patch("/models/{name}/versions/{version}", response_model=ModelView)
    def change(name: str, version: str, request: ChangeModel) -> Response:
        """Update description, tags, properties (which cannot be overwritten), datasets, samples, resources."""
        model = models.get(models.resolve(name), version)
        return json_response(_view(models, models.change(model.name, model.version, request)))

    @router.delete("/models/{name}/versions/{version}", status_code=204)
    def delete(name: str, version: str, by: str | None = None) -> Response:
        """Delete a version. Fails while a service uses it or an alias refers to it."""
        model = models.get(models.resolve(name), version)
        models.delete(model.name, model.version, by=by)
        return Response(status_code=204)

    @router.post("/models/{name}/versions/{version}/stage", response_model=ModelView)
    def stage(name: str, version: str, request: SetStage) -> Response:
        """Set the stage: `none`, `candidate`, `approved`, `rejected` or `archived`; recorded in the history."""
        model = models.get(models.resolve(name), version)
        return json_response(
            _view(models, models.set_stage(model.name, model.version, request.stage, by=request.by, note=request.note))
        )

    @router.post("/models/{name}/aliases/{alias}", response_model=ModelView)
    def set_alias(name: str, alias: str, request: SetAlias) -> Response:
        """Point an alias to a version; another version of the name loses it."""
        name = models.resolve(name)
        models.set_alias(name, alias, request.version, by=request.by)
        return json_response(_view(models, models.get(name, request.version)))

    @router.delete("/models/{name}/aliases/{alias}", status_code=204)
    def remove_alias(name: str, alias: str, by: str | None = None) -> Response:
        models.remove_alias(models.resolve(name), alias, by=by)
        return Response(status_code=204)

    @router.get("/models/{name}/versions/{version}/compare", response_model=ModelComparison)
    def comparison(name: str, version: str, other: str) -> Response:
        """Compare this version (left) with `other` (`name:version`, right)."""
        return json_response(compare(models, models.get(models.resolve(name), version), models.find(other)))

    @router.get("/models/{name}/versions/{version}/files.zip")
    def zipped(name: str, version: str) -> Response:
        name, number = models.resolve(name), models.get(models.resolve(name), version).version
        files = [(file.path, models.source_of(name, number, file.path)) for file in models.files(name, number)]
        return zip_response(files, f"{name}-{number}.zip")

    @router.get("/models/{name}/versions/{version}/files/{path:any}")
    def file(name: str, version: str, path: str, inline: bool = False) -> Response:
        """Return the content or ranges of it; `inline=1` sets a type that a browser displays but never executes."""
        name = models.resolve(name)
        source = models.source_of(name, models.get(name, version).version, path)
        return file_response(source, Path(path).name, inline=inline)

    return router


def _view(
    models: Models, model: ModelRecord, aliases: list[Alias] | None = None, users: Users | None = None
) -> ModelView:
    """Pass the ``aliases`` of the name and all ``users`` to avoid one query per version in lists."""
    aliases = models.aliases(model.name).get(model.name, []) if aliases is None else aliases
    services = (models.users() if users is None else users).get((model.name, model.version), ())
    fields = {name: getattr(model, name) for name in ModelView.__dataclass_fields__ if name not in _COMPUTED_FIELDS}
    names = [alias.alias for alias in aliases if alias.version == model.version]
    return ModelView(**fields, aliases=names, used_by=sorted(services))


_COMPUTED_FIELDS = ("aliases", "used_by")
