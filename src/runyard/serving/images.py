"""Images of the SDK v1: models and a scoring script under one name, deployable any number of times."""

from __future__ import annotations

import re
from typing import Any

from runyard.errors import WebserviceException
from runyard.models.registry import Models
from runyard.orchestrator.components import Components
from runyard.serving import validation
from runyard.spec.json import from_json
from runyard.spec.service import VersionSpec
from runyard.store.services import ImageRecord, ImageStore
from runyard.wire.services import ChangeImage, CreateImage

NAME = re.compile(r"[a-z0-9][-.a-z0-9]{1,30}[a-z0-9]")


class Images:
    def __init__(self, components: Components, models: Models) -> None:
        self._components, self._models = components, models
        self.store = ImageStore(components.database)

    def create(self, request: CreateImage) -> ImageRecord:
        if not NAME.fullmatch(request.name):
            raise WebserviceException(
                f"invalid image name {request.name!r}",
                hint="use 3 to 32 lowercase letters, digits, '-' or '.', with a letter or digit at both ends",
            )
        records = validation.find_models(self._models, request.models)
        validation.validate_spec(self._components, self._models, records, from_json(VersionSpec, request.spec))
        return self.store.add(
            request.name,
            models=[[record.name, record.version] for record in records],
            spec=request.spec,
            description=request.description,
            tags=request.tags,
            properties=request.properties,
        )

    def change(self, name: str, version: int, request: ChangeImage) -> ImageRecord:
        def apply(image: ImageRecord) -> dict[str, Any]:
            values: dict[str, Any] = {}
            if request.tags is not None:
                values["tags"] = request.tags
            if request.properties is not None:
                changed = {k for k, v in request.properties.items() if image.properties.get(k, v) != v}
                if changed:
                    raise WebserviceException(f"properties cannot be changed: {', '.join(sorted(changed))}")
                values["properties"] = {**image.properties, **request.properties}
            return values

        return self.store.change(name, version, apply)
