"""The registry: models are registered, found, named, approved, compared and, with care, deleted."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from runyard import clock
from runyard.errors import ModelInUse, UserErrorException, WebserviceException
from runyard.models.files import files_of_run, uploaded_owner
from runyard.models.lineage import lineage_of
from runyard.orchestrator.components import Rooms
from runyard.store.models import Alias, Deed, ModelRecord, ModelStore
from runyard.tracking.artifacts import Artifact, disown, record
from runyard.wire.models import ChangeModel, RegisterModel

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")
ALIAS = re.compile(r"(?!latest$)[A-Za-z][A-Za-z0-9._-]{0,63}")
STAGES = ("none", "candidate", "approved", "rejected", "archived")

Users = Mapping[tuple[str, int], Iterable[str]]  # by name and version


class Models:
    """One for a yard. Everything is in the store: a second one knows the same."""

    def __init__(self, rooms: Rooms) -> None:
        self._artifacts = rooms.artifacts
        self._rooms = rooms
        self._store = ModelStore(rooms.database)
        self._users: Callable[[], Users] = dict

    def watch_use(self, users: Callable[[], Users]) -> None:
        """``users()`` names the services that use versions; such a version is not deleted."""
        self._users = users

    def register(self, request: RegisterModel) -> ModelRecord:
        """Files of a run that are kept already are not read again: their content is stored once."""
        known = self._store.registered(request.registration_id)
        if known is not None:
            return known
        _checked_name(request.name)
        if (request.upload_id is None) == (request.run_path is None):
            raise UserErrorException("a model is made of files that were sent, or of a path among a run's files")
        if request.framework_version and not request.framework:
            raise WebserviceException("a model_framework_version needs a model_framework")
        files = self._files_for(request)
        try:
            return self._add(request, files)
        finally:
            self._artifacts.release(files)

    def get(self, name: str, version: int | str | None = None) -> ModelRecord:
        """By number or alias; None: the latest."""
        return self._store.get(name, version)

    def find(self, text: str) -> ModelRecord:
        """``digits``, ``digits:3``, ``digits:champion``."""
        name, _, version = text.partition(":")
        return self._store.get(name, version or None)

    def matching(
        self,
        *,
        name: str | None = None,
        run_id: str | None = None,
        framework: str | None = None,
        stage: str | None = None,
        tags: Mapping[str, str | None] | None = None,
        properties: Mapping[str, str | None] | None = None,
        dataset_id: str | None = None,
        latest: bool = False,
    ) -> list[ModelRecord]:
        """A label that is asked for with the value None must only be there. ``latest``: of those that fit."""
        if stage is not None:
            _check_stage(stage)  # a stage that was mistyped would look like one that no model is at
        found = [
            one
            for one in self._store.find(name=name, run_id=run_id)
            if (framework is None or one.framework == framework)
            and (stage is None or one.stage == stage)
            and _has(one.tags, tags or {})
            and _has(one.properties, properties or {})
            and (dataset_id is None or dataset_id in _dataset_ids(one))
        ]
        if latest:
            newest: dict[str, ModelRecord] = {}
            for one in found:  # of each name the newest comes first
                newest.setdefault(one.name, one)
            return list(newest.values())
        return found

    def aliases(self, name: str | None = None) -> dict[str, list[Alias]]:
        return self._store.aliases(name)

    def history(self, name: str, version: int | None = None) -> list[Deed]:
        return self._store.history(name, version)

    def users(self) -> Users:
        return self._users()

    def files(self, name: str, version: int) -> list[Artifact]:
        return self._artifacts.files(_owner(self._store.get(name, version)))

    def path_of(self, name: str, version: int, path: str) -> Path:
        """The stored content's own file: to be read, never written to."""
        known = [file.path for file in self.files(name, version)]
        if path not in known:
            shown = ", ".join(known[:10]) + (", …" if len(known) > 10 else "")
            raise UserErrorException(f"{name}:{version} has no file {path!r}", hint=f"its files: {shown}")
        return self._artifacts.path_of(_owner(self._store.get(name, version)), path)

    def change(self, name: str, version: int, request: ChangeModel) -> ModelRecord:
        def changes(before: ModelRecord) -> dict[str, Any]:
            for key, value in request.properties.items():
                if before.properties.get(key, value) != value:
                    raise UserErrorException(
                        f"the property {key!r} of {before.id} is {before.properties[key]!r} and is written once",
                        hint="use a tag for what changes",
                    )
            kept = {key: value for key, value in before.tags.items() if key not in request.remove_tags}
            named = [*before.details.get("datasets", []), *request.datasets]
            details = {**before.details, **request.details, **({"datasets": named} if named else {})}
            found: dict[str, Any] = {
                "tags": {**kept, **request.tags},
                "properties": {**before.properties, **request.properties},
                "details": details,
            }
            return found if request.description is None else {**found, "description": request.description}

        return self._store.change(name, version, changes)

    def set_stage(self, name: str, version: int, stage: str, *, by: str | None, note: str | None = None) -> ModelRecord:
        _check_stage(stage)
        return self._store.set_stage(name, version, stage, by, note)

    def set_alias(self, name: str, alias: str, version: int, *, by: str | None) -> None:
        """The alias is this version's alone: whoever asks for it gets this one from now on."""
        if not ALIAS.fullmatch(alias):
            raise UserErrorException(
                f"{alias!r} cannot be an alias",
                hint="letters, digits, '.', '_' and '-', a letter first; 'latest' is always the newest version",
            )
        self._store.set_alias(name, alias, version, by)

    def remove_alias(self, name: str, alias: str, *, by: str | None) -> None:
        self._store.get(name)
        self._store.remove_alias(name, alias, by)

    def delete(self, name: str, version: int, *, by: str | None) -> None:
        found = self._store.get(name, version)
        users = sorted(self.users().get((name, version), ()))
        if users:
            shown = ", ".join(map(repr, users))
            raise ModelInUse(
                f"{found.id} is used by {'the service' if len(users) == 1 else 'the services'} {shown}",
                hint="delete the service, or give it another version, first",
                model=found.id,
            )
        files = self._artifacts.files(_owner(found))
        self._store.remove(name, version, by, lambda connection: disown(connection, _owner(found)))
        self._artifacts.sweep(files)

    def _add(self, request: RegisterModel, files: Sequence[Artifact]) -> ModelRecord:
        lineage = lineage_of(self._rooms, request.run_id) if request.run_id else {}
        details = {**request.details}
        if request.datasets:
            details["datasets"] = request.datasets
        if request.made_of:
            details["made_of"] = self.find(request.made_of).id
        now = clock.now()

        def make(version: int) -> ModelRecord:
            return ModelRecord(
                name=request.name,
                version=version,
                registration_id=request.registration_id,
                stage=STAGES[0],
                digest=_digest(files),
                size=sum(file.size for file in files),
                created_at=now,
                changed_at=now,
                description=request.description,
                framework=request.framework,
                framework_version=request.framework_version,
                created_by=request.registered_by,
                tags=request.tags,
                properties=request.properties,
                details=details,
                **lineage,
            )

        def take_files(connection: Connection, made: ModelRecord) -> None:
            record(connection, _owner(made), files)
            if request.upload_id is not None:
                disown(connection, uploaded_owner(request.upload_id))

        return self._store.add(request.name, request.registration_id, make, take_files)

    def _files_for(self, request: RegisterModel) -> Sequence[Artifact]:
        """Held: they are to be released."""
        if request.upload_id is not None:
            sent = self._artifacts.files(uploaded_owner(request.upload_id))
            if not sent:
                raise UserErrorException(f"no file of the model {request.name!r} was sent")
            self._artifacts.hold(sent)
            return sent
        if request.run_id is None:
            raise UserErrorException("a path among a run's files needs the run's id")
        return files_of_run(self._rooms, request.run_id, request.run_path or "")


def _owner(model: ModelRecord) -> str:
    """Under which its files stand: never the id of a run, which has no such sign in it."""
    return f"model:{model.name}:{model.version}"


def _checked_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise WebserviceException(
            f"a model cannot be named {name!r}",
            hint="letters, digits, '.', '_' and '-', a letter or digit first, at most 255",
        )


def _digest(files: Sequence[Artifact]) -> str:
    text = "".join(f"{file.digest}  {file.path}\n" for file in sorted(files, key=lambda file: file.path))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _check_stage(stage: str) -> None:
    if stage not in STAGES:
        raise UserErrorException(f"there is no stage {stage!r}", hint=f"stages: {', '.join(STAGES)}")


def _has(labels: Mapping[str, str | None], wanted: Mapping[str, str | None]) -> bool:
    return all(key in labels and (value is None or labels[key] == value) for key, value in wanted.items())


def _dataset_ids(model: ModelRecord) -> set[str]:
    named = [one.get("id") for one in model.details.get("datasets", [])]
    return {str(one) for one in [*named, *(use.get("dataset_id") for use in model.data)] if one}
