"""The registry: register, find, label, approve and delete model versions."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, update

from runyard import clock
from runyard.errors import ModelInUse, UserErrorException, WebserviceException
from runyard.models.files import select_run_files, upload_owner
from runyard.models.lineage import model_origin
from runyard.models.names import NAME, STAGES, check_alias, check_name, check_stage, to_model_name
from runyard.models.webhooks import Webhooks
from runyard.orchestrator.components import Components
from runyard.store import schema
from runyard.store.model_names import ModelName, ModelNames
from runyard.store.models import Alias, HistoryEntry, ModelRecord, ModelStore
from runyard.tracking.artifacts import Artifact, FileSource, delete_records, record
from runyard.wire.models import ChangeModel, RegisterModel

Users = Mapping[tuple[str, int], Iterable[str]]  # services by model name and version


class Models:
    """The models of a yard. All state is in the database, so several instances are equivalent."""

    def __init__(self, components: Components) -> None:
        self._artifacts = components.artifacts
        self._components = components
        self._store = ModelStore(components.database)
        self._names = ModelNames(components.database)
        self.webhooks = Webhooks(components.database, components.vault)
        self._users: Callable[[], Users] = dict

    def set_user_lookup(self, users: Callable[[], Users]) -> None:
        """Set the function that returns the services by the versions that they use, which must not be deleted."""
        self._users = users

    def register(self, request: RegisterModel) -> ModelRecord:
        """Register a model. Stored files of a run are neither copied nor read again."""
        existing = self._store.by_registration_id(request.registration_id)
        if existing is not None:
            return existing
        check_name(request.name)
        if (request.upload_id is None) == (request.run_path is None):
            raise UserErrorException("expected either upload_id or run_path for the files of a model")
        if request.framework_version and not request.framework:
            raise WebserviceException("a model_framework_version needs a model_framework")
        return self.register_files(request, self._hold_files(request))

    def register_files(
        self, request: RegisterModel, files: Sequence[Artifact], *, name_must_exist: bool = False
    ) -> ModelRecord:
        """Register stored files, which the caller holds; they are released."""
        try:
            model = self._add(request, files, name_must_exist)
        finally:
            self._artifacts.release(files)
        self.webhooks.wake()
        return model

    def get(self, name: str, version: int | str | None = None) -> ModelRecord:
        """Return a version by number or alias; the latest by default."""
        return self._store.get(name, version)

    def find(self, text: str) -> ModelRecord:
        """Parse and return a reference such as ``digits``, ``digits:3`` or ``digits:champion``."""
        name, _, version = text.partition(":")
        return self._store.get(self.resolve(name), version or None)

    def search(
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
        """List matching versions by name, newest first.

        Args:
            tags, properties: Required labels; the value None matches any value of the key.
            latest: Only the newest matching version of each name.
        """
        if stage is not None:
            check_stage(stage)  # otherwise a mistyped stage would silently match nothing
        matches = [
            model
            for model in self._store.find(name=name, run_id=run_id)
            if (framework is None or model.framework == framework)
            and (stage is None or model.stage == stage)
            and _has_labels(model.tags, tags or {})
            and _has_labels(model.properties, properties or {})
            and (dataset_id is None or dataset_id in _dataset_ids(model))
        ]
        if not latest:
            return matches
        newest: dict[str, ModelRecord] = {}
        for model in matches:
            newest.setdefault(model.name, model)
        return list(newest.values())

    def aliases(self, name: str | None = None) -> dict[str, list[Alias]]:
        return self._store.aliases(name)

    def history(self, name: str, version: int | None = None) -> list[HistoryEntry]:
        return self._store.history(name, version)

    def users(self) -> Users:
        return self._users()

    def files(self, name: str, version: int) -> list[Artifact]:
        return self._artifacts.files(_owner(self._store.get(name, version)))

    def source_of(self, name: str, version: int, path: str) -> FileSource:
        """The stored content, which must not be written to. Readers verify it."""
        paths = [file.path for file in self.files(name, version)]
        if path not in paths:
            listing = ", ".join(paths[:10]) + (", …" if len(paths) > 10 else "")
            raise UserErrorException(f"{name}:{version} has no file {path!r}", hint=f"its files: {listing}")
        return self._artifacts.source_of(_owner(self._store.get(name, version)), path)

    def change(self, name: str, version: int, request: ChangeModel) -> ModelRecord:
        def apply(model: ModelRecord) -> dict[str, Any]:
            for key, value in request.properties.items():
                if model.properties.get(key, value) != value:
                    raise UserErrorException(
                        f"property {key!r} of {model.id} is already {model.properties[key]!r} and cannot be changed",
                        hint="properties cannot be overwritten; use a tag for values that change",
                    )
            tags = {key: value for key, value in model.tags.items() if key not in request.remove_tags}
            datasets = [*model.details.get("datasets", []), *request.datasets]
            details = {**model.details, **request.details, **({"datasets": datasets} if datasets else {})}
            columns: dict[str, Any] = {
                "tags": {**tags, **request.tags},
                "properties": {**model.properties, **request.properties},
                "details": details,
            }
            return columns if request.description is None else {**columns, "description": request.description}

        model = self._store.change(name, version, apply)
        self.webhooks.wake()
        return model

    def set_stage(
        self,
        name: str,
        version: int,
        stage: str,
        *,
        by: str | None,
        note: str | None = None,
        archive_others: bool = False,
    ) -> ModelRecord:
        """Set the stage; ``archive_others`` archives the other versions that are at this stage."""
        check_stage(stage)
        return self._store.set_stage(name, version, stage, by, note, "archived" if archive_others else None)

    def set_alias(self, name: str, alias: str, version: int, *, by: str | None) -> None:
        """Point an alias to this version; another version of the name loses it."""
        check_alias(alias)
        self._store.set_alias(name, alias, version, by)
        self.webhooks.wake()

    def remove_alias(self, name: str, alias: str, *, by: str | None) -> None:
        self._store.get(name)
        self._store.remove_alias(name, alias, by)
        self.webhooks.wake()

    def delete(
        self, name: str, version: int, *, by: str | None, with_aliases: bool = False, keep_name: bool = False
    ) -> None:
        """Delete a version. See :meth:`ModelStore.remove` for its aliases and its name."""
        model = self._store.get(name, version)
        self._check_unused([model])
        files = self._artifacts.files(_owner(model))

        def remove_files(connection: Connection) -> None:
            delete_records(connection, _owner(model))

        self._store.remove(name, version, by, remove_files, with_aliases=with_aliases, keep_name=keep_name)
        self._artifacts.remove_unreferenced(files)
        self.webhooks.wake()

    def resolve(self, name: str) -> str:
        """Return the name for a title; a name that is valid in the yard is its own title."""
        return name if NAME.fullmatch(name) else self._names.name_of(name)

    def name_record(self, name: str) -> ModelName:
        return self._names.by_name(name)

    def named(self, title: str) -> ModelName:
        """Return a name by its title, which is its name in MLflow."""
        return self._names.get(title)

    def all_names(self) -> list[ModelName]:
        """All names, also those without versions."""
        return self._names.all()

    def add_name(self, title: str, description: str | None, tags: Mapping[str, str]) -> ModelName:
        name = self._names.add(to_model_name(title), title, description, tags)
        self.webhooks.wake()
        return name

    def change_name(self, title: str, apply: Callable[[ModelName], Mapping[str, Any]]) -> ModelName:
        return self._names.change(title, apply)

    def rename(self, title: str, new_title: str) -> ModelName:
        """Rename a model with all of its versions. Fails while a service uses one of them."""
        name, new_name = self._names.get(title).name, to_model_name(new_title)
        if name != new_name:
            self._check_unused(self._store.find(name=name))

        def move_files(connection: Connection, version: int) -> None:
            owner = schema.artifacts.c.run_id
            values = {"run_id": file_owner(new_name, version)}
            connection.execute(update(schema.artifacts).where(owner == file_owner(name, version)).values(**values))

        return self._names.rename(title, new_name, new_title, move_files)

    def delete_name(self, title: str, *, by: str | None) -> None:
        """Delete a name with all versions and aliases. Fails while a service uses one of them."""
        name = self._names.get(title).name
        models = self._store.find(name=name)
        self._check_unused(models)
        files = [file for model in models for file in self._artifacts.files(_owner(model))]

        def remove_files(connection: Connection, version: int) -> None:
            delete_records(connection, file_owner(name, version))

        self._names.remove(title, by, remove_files)
        self._artifacts.remove_unreferenced(files)

    def _check_unused(self, models: Iterable[ModelRecord]) -> None:
        all_users = self.users()
        for model in models:
            users = sorted(all_users.get((model.name, model.version), ()))
            if users:
                services = ", ".join(map(repr, users))
                raise ModelInUse(
                    f"{model.id} is used by {'the service' if len(users) == 1 else 'the services'} {services}",
                    hint="delete the service or deploy another version to it first",
                    model=model.id,
                )

    def _add(self, request: RegisterModel, files: Sequence[Artifact], name_must_exist: bool) -> ModelRecord:
        lineage = model_origin(self._components, request.run_id) if request.run_id else {}
        details = {**request.details}
        if request.datasets:
            details["datasets"] = request.datasets
        if request.made_of:
            details["made_of"] = self.find(request.made_of).id
        now = clock.now()

        def build(version: int) -> ModelRecord:
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

        def add_files(connection: Connection, model: ModelRecord) -> None:
            record(connection, _owner(model), files)
            if request.upload_id is not None:
                delete_records(connection, upload_owner(request.upload_id))

        return self._store.add(request.name, request.registration_id, build, add_files, name_must_exist=name_must_exist)

    def _hold_files(self, request: RegisterModel) -> Sequence[Artifact]:
        """Return the files of the request and protect them from deletion; the caller must release them."""
        if request.upload_id is not None:
            files = self._artifacts.files(upload_owner(request.upload_id))
            if not files:
                raise UserErrorException(f"no files were uploaded for the model {request.name!r}")
            self._artifacts.hold(files)
            return files
        if request.run_id is None:
            raise UserErrorException("run_path requires run_id")
        return select_run_files(self._components, request.run_id, request.run_path or "")


def _owner(model: ModelRecord) -> str:
    return file_owner(model.name, model.version)


def file_owner(name: str, version: int) -> str:
    """The owner of a version's files; cannot equal a run id, which has no colon."""
    return f"model:{name}:{version}"


def _digest(files: Sequence[Artifact]) -> str:
    text = "".join(f"{file.digest}  {file.path}\n" for file in sorted(files, key=lambda file: file.path))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _has_labels(labels: Mapping[str, str | None], required: Mapping[str, str | None]) -> bool:
    return all(key in labels and (value is None or labels[key] == value) for key, value in required.items())


def _dataset_ids(model: ModelRecord) -> set[str]:
    declared = [dataset.get("id") for dataset in model.details.get("datasets", [])]
    return {str(id) for id in [*declared, *(use.get("dataset_id") for use in model.data)] if id}
