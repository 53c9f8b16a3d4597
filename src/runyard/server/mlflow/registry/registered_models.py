"""MLflow's endpoints for registered models: names, their tags and aliases."""

from __future__ import annotations

from typing import Any

from runyard.models.registry import Models
from runyard.server.mlflow.errors import DOES_NOT_EXIST, INVALID, MlflowError
from runyard.server.mlflow.registry import names, serializers, stages
from runyard.store.model_names import ModelName

Fields = dict[str, Any]


def create(models: Models, fields: Fields) -> Any:
    title = names.model_title(fields)
    tags = names.tags(fields)
    name = models.add_name(title, names.text(fields, "description") or None, tags)
    return {"registered_model": to_json(models, name)}


def get(models: Models, fields: Fields) -> Any:
    return {"registered_model": to_json(models, models.named(names.model_title(fields)))}


def rename(models: Models, fields: Fields) -> Any:
    title, new_title = names.model_title(fields), names.model_title(fields, "new_name")
    return {"registered_model": to_json(models, models.rename(title, new_title))}


def update(models: Models, fields: Fields) -> Any:
    description = names.text(fields, "description")
    name = models.change_name(names.model_title(fields), lambda _: {"description": description})
    return {"registered_model": to_json(models, name)}


def delete(models: Models, fields: Fields) -> Any:
    models.delete_name(names.model_title(fields), by=None)
    return {}


def latest_versions(models: Models, fields: Fields) -> Any:
    name = models.named(names.model_title(fields))
    requested_stages = [stages.canonical(stage) for stage in fields.get("stages") or ()]
    latest = serializers.latest_by_stage(models.search(name=name.name))
    aliases = models.aliases(name.name).get(name.name, [])
    return {
        "model_versions": [
            serializers.model_version(name, model, aliases)
            for stage, model in latest.items()
            if not requested_stages or stage in requested_stages
        ]
    }


def set_tag(models: Models, fields: Fields) -> Any:
    key, value = names.tag(fields)
    models.change_name(names.model_title(fields), lambda name: {"tags": {**name.tags, key: value}})
    return {}


def delete_tag(models: Models, fields: Fields) -> Any:
    key = names.tag_key(fields)

    def remove(name: ModelName) -> Fields:
        return {"tags": {tag: value for tag, value in name.tags.items() if tag != key}}

    models.change_name(names.model_title(fields), remove)
    return {}


def set_alias(models: Models, fields: Fields) -> Any:
    name, alias = models.named(names.model_title(fields)), names.alias_to_set(fields)
    models.set_alias(name.name, alias, names.version_number(fields), by=None)
    return {}


def delete_alias(models: Models, fields: Fields) -> Any:
    name, alias = models.named(names.model_title(fields)), names.alias_to_read(fields)
    if any(existing.alias == alias for existing in models.aliases(name.name).get(name.name, [])):
        models.remove_alias(name.name, alias, by=None)
    return {}


def get_by_alias(models: Models, fields: Fields) -> Any:
    name, alias = models.named(names.model_title(fields)), names.alias_to_read(fields)
    aliases = models.aliases(name.name).get(name.name, [])
    if alias.lower() == "latest":
        versions = models.search(name=name.name)
        if not versions:
            raise MlflowError(DOES_NOT_EXIST, f"the model {name.title!r} has no versions")
        return {"model_version": serializers.model_version(name, versions[0], aliases)}
    version = next((existing.version for existing in aliases if existing.alias == alias), None)
    if version is None:
        raise MlflowError(INVALID, f"Registered model alias {alias} not found.")
    return {"model_version": serializers.model_version(name, models.get(name.name, version), aliases)}


def to_json(models: Models, name: ModelName) -> Fields:
    aliases = models.aliases(name.name).get(name.name, [])
    return serializers.registered_model(name, models.search(name=name.name), aliases)
