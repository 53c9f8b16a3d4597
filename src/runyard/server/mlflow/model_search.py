"""Search for logged models by attributes, parameters, tags, and metrics, which may belong to datasets."""

from __future__ import annotations

import math
from typing import Any

from runyard.orchestrator.conductor import Conductor
from runyard.server.mlflow import experiments, filters, models
from runyard.server.mlflow.constants import to_experiment_name
from runyard.server.mlflow.errors import INVALID, MlflowError, integer_field, require
from runyard.store.documents import MODEL, Document, Documents
from runyard.store.run_search import ATTRIBUTE, METRIC, PARAM, Comparison, Order

Fields = dict[str, Any]
_DEFAULT_RESULTS = 100
_TIMES = {
    "creation_time": "creation_timestamp_ms",
    "creation_timestamp": "creation_timestamp_ms",
    "last_updated_time": "last_updated_timestamp_ms",
    "last_updated_timestamp": "last_updated_timestamp_ms",
}


def search(conductor: Conductor, fields: Fields) -> Any:
    """Find models. With datasets, only their metrics count, and a model must have one of them."""
    names = [to_experiment_name(id) for id in fields.get("experiment_ids") or ()]
    comparisons = filters.parse(fields.get("filter"), filters.MODELS)
    orders = [_Order(item) for item in fields.get("order_by") or ()]
    datasets = [_dataset(item) for item in fields.get("datasets") or ()]
    documents = Documents(conductor.components.database).find(MODEL, names)
    results = [
        document
        for document in documents
        if not document.content.get("deleted") and _matches(document, comparisons, datasets)
    ]
    if not any(order.is_creation_time for order in orders):
        results.sort(key=lambda document: document.created_at, reverse=True)
    for order in reversed(orders):
        order.sort(results)
    return experiments.page("models", [models.to_json(document) for document in results], fields, _DEFAULT_RESULTS)


class _Order:
    """An order by an attribute, or by a metric, optionally that of a dataset."""

    def __init__(self, item: Any) -> None:
        fields = item if isinstance(item, dict) else {"field_name": item}
        self._order: Order = filters.parse_order(require(fields, "field_name"), filters.MODEL_ORDERS)
        self._ascending = self._order.ascending and str(fields.get("ascending", True)).lower() == "true"
        self._dataset = fields.get("dataset_name"), fields.get("dataset_digest")

    @property
    def is_creation_time(self) -> bool:
        return self._order.kind == ATTRIBUTE and _TIMES.get(self._order.key) == "creation_timestamp_ms"

    def sort(self, documents: list[Document]) -> None:
        """Sort in place; models without the value come last in both directions."""
        values = {document.id: self._value(document) for document in documents}
        documents.sort(
            key=lambda document: 0 if values[document.id] is None else values[document.id], reverse=not self._ascending
        )
        documents.sort(key=lambda document: values[document.id] is None)

    def _value(self, document: Document) -> Any:
        if self._order.kind == ATTRIBUTE:
            return _attribute(document, self._order.key)
        metrics = [metric for metric in _metrics(document, self._order.key) if _is_of(metric, *self._dataset)]
        newest = max(metrics, key=_time, default=None)
        value = None if newest is None else float(newest["value"])
        return None if value is None or math.isnan(value) else value


def _matches(document: Document, comparisons: list[Comparison], datasets: list[tuple[str, str | None]]) -> bool:
    def is_counted(metric: Fields) -> bool:
        return not datasets or any(_is_of(metric, *dataset) for dataset in datasets)

    of_metrics = [test for test in comparisons if test.kind == METRIC]
    for test in of_metrics:
        metrics = filter(is_counted, _metrics(document, test.key))
        if not any(filters.is_satisfied(test, float(metric["value"])) for metric in metrics):
            return False
    if not of_metrics and not any(map(is_counted, document.content["metrics"])) and datasets:
        return False

    def value(kind: str, key: str) -> Any:
        labels = document.content["params" if kind == PARAM else "tags"]
        return _attribute(document, key) if kind == ATTRIBUTE else labels.get(key)

    return filters.matches([test for test in comparisons if test.kind != METRIC], value)


def _dataset(item: Fields) -> tuple[str, str | None]:
    if not item.get("dataset_name"):
        raise MlflowError(INVALID, "`dataset_name` in the `datasets` clause must be specified.")
    return item["dataset_name"], item.get("dataset_digest") or None


def _is_of(metric: Fields, dataset_name: str | None, dataset_digest: str | None) -> bool:
    """True if the metric belongs to the dataset; an absent name or digest matches every dataset."""
    return (not dataset_name or metric.get("dataset_name") == dataset_name) and (
        not dataset_digest or metric.get("dataset_digest") == dataset_digest
    )


def _metrics(document: Document, name: str) -> list[Fields]:
    return [metric for metric in document.content["metrics"] if metric["key"] == name]


def _time(metric: Fields) -> tuple[int, int]:
    return integer_field(metric, "timestamp", 0), integer_field(metric, "step", 0)


def _attribute(document: Document, key: str) -> Any:
    value = models.to_json(document)["info"].get(_TIMES.get(key, key))
    return value.replace("LOGGED_MODEL_", "") if key == "status" else value  # filters contain MLflow's short names
