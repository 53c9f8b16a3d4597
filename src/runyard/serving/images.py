"""Images: a name, models and a scoring script together, to be deployed under any number of names."""

from __future__ import annotations

import re

from runyard.errors import WebserviceException
from runyard.models.registry import Models
from runyard.orchestrator.components import Rooms
from runyard.serving import validation
from runyard.spec.json import from_json
from runyard.spec.service import VersionSpec
from runyard.store.services import ImageRecord, ImageStore
from runyard.wire.services import ChangeImage, CreateImage

NAME = re.compile(r"[a-z0-9][-.a-z0-9]{1,30}[a-z0-9]")


class Images:
    def __init__(self, rooms: Rooms, models: Models) -> None:
        self._rooms, self._models = rooms, models
        self.store = ImageStore(rooms.database)

    def create(self, request: CreateImage) -> ImageRecord:
        if not NAME.fullmatch(request.name):
            raise WebserviceException(
                f"an image cannot be named {request.name!r}",
                hint="3 to 32 characters: lower-case letters, digits, '-' and '.', a letter or digit first and last",
            )
        chosen = validation.chosen_models(self._models, request.models)
        validation.checked_spec(self._rooms, self._models, chosen, from_json(VersionSpec, request.spec))
        return self.store.add(
            request.name,
            models=[[one.name, one.version] for one in chosen],
            spec=request.spec,
            description=request.description,
            tags=request.tags,
            properties=request.properties,
        )

    def change(self, name: str, version: int, request: ChangeImage) -> ImageRecord:
        before = self.store.get(name, version)
        values = {}
        if request.tags is not None:
            values["tags"] = request.tags
        if request.properties is not None:
            written = {k for k, v in request.properties.items() if before.properties.get(k, v) != v}
            if written:
                raise WebserviceException(f"the properties {', '.join(sorted(written))} are written once")
            values["properties"] = {**before.properties, **request.properties}
        return self.store.change(name, version, **values) if values else before
