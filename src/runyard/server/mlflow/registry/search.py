"""Searches for registered models and model versions: filters, orders and pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runyard.models.registry import Models
from runyard.server.mlflow import filters
from runyard.server.mlflow.errors import INVALID, MlflowError, integer_field
from runyard.server.mlflow.registry import serializers
from runyard.server.mlflow.registry.names import PROMPT_TAG
from runyard.store.models import ModelRecord
from runyard.store.run_search import TAG, Comparison

Fields = dict[str, Any]
_TIMES = ("creation_timestamp", "last_updated_timestamp")
_MODELS = filters.Grammar(("name",))
_MODEL_ORDERS = filters.Grammar(("name", *_TIMES), _TIMES)
_VERSIONS = filters.Grammar(("name", "version_number", "run_id", "source_path"), ("version_number",))
_VERSION_ORDERS = filters.Grammar(("name", "version_number", *_TIMES), ("version_number", *_TIMES))
_MAX_MODELS, _MAX_VERSIONS = 1000, 200_000


def registered_models(models: Models, fields: Fields) -> Any:
    comparisons = _comparisons(fields, _MODELS)
    versions: dict[str, list[ModelRecord]] = {}
    for model in models.search():
        versions.setdefault(model.name, []).append(model)
    aliases = models.aliases()
    results = [
        serializers.registered_model(name, versions.get(name.name, ()), aliases.get(name.name, []))
        for name in models.all_names()
    ]
    results = [result for result in results if filters.matches(comparisons, _values(result))]
    _sort(results, _orders(fields, _MODEL_ORDERS) or [("name", True)])
    return page("registered_models", results, fields, 100, _MAX_MODELS)


def model_versions(models: Models, fields: Fields) -> Any:
    comparisons = _comparisons(fields, _VERSIONS)
    names, aliases = {name.name: name for name in models.all_names()}, models.aliases()
    results = [
        serializers.model_version(names[model.name], model, aliases.get(model.name, []))
        for model in models.search()
        if model.name in names
    ]
    results = [result for result in results if filters.matches(comparisons, _values(result))]
    default = [("last_updated_timestamp", False), ("name", True), ("version_number", False)]
    _sort(results, _orders(fields, _VERSION_ORDERS) or default)
    return page("model_versions", results, fields, _MAX_VERSIONS, _MAX_VERSIONS)


def page(name: str, results: Sequence[Any], fields: Fields, default_size: int, max_size: int) -> Fields:
    size = integer_field(fields, "max_results", default_size)
    if not 0 < size <= max_size:
        raise MlflowError(INVALID, f"max_results must be between 1 and {max_size:,}, got {size}")
    token = str(fields.get("page_token") or "0")
    if not token.isascii() or not token.isdecimal() or len(token) > 15:
        raise MlflowError(INVALID, f"invalid page token {token[:100]!r}")
    end = int(token) + size
    content: Fields = {name: results[int(token) : end]}
    if len(results) > end:
        content["next_page_token"] = str(end)
    return content


def _comparisons(fields: Fields, grammar: filters.Grammar) -> list[Comparison]:
    comparisons = filters.parse(fields.get("filter"), grammar)
    for comparison in comparisons:
        if comparison.kind not in (TAG, "attribute"):
            raise MlflowError(INVALID, "a search for models supports attributes and tags")
    return comparisons


def _orders(fields: Fields, grammar: filters.Grammar) -> list[tuple[str, bool]]:
    orders = [filters.parse_order(str(text), grammar) for text in fields.get("order_by") or ()]
    if any(order.kind == TAG for order in orders):
        raise MlflowError(INVALID, f"models can be ordered by {', '.join(grammar.attributes)}")
    return [(order.key, order.ascending) for order in orders]


def _values(result: Fields) -> Callable[[str, str], Any]:
    tags = {tag["key"]: tag["value"] for tag in result["tags"]}

    def value(kind: str, key: str) -> Any:
        if kind == TAG:
            # clients exclude prompts from every search, and models do not have the tag
            return tags.get(key, "false" if key == PROMPT_TAG else None)
        return _attribute(result, key)

    return value


def _attribute(result: Fields, key: str) -> Any:
    if key == "version_number":
        return int(result["version"])
    return result["source" if key == "source_path" else key]


def _sort(results: list[Fields], orders: Sequence[tuple[str, bool]]) -> None:
    ties = [("name", True), ("version_number", False)] if results and "version" in results[0] else [("name", True)]
    for key, ascending in reversed([*orders, *ties]):
        results.sort(key=lambda result: _attribute(result, key), reverse=not ascending)
