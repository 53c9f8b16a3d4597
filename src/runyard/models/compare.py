"""Comparison of two model versions: their differences, and all of their metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runyard.environments.lock_diff import packages_in
from runyard.models.registry import Models
from runyard.store.models import ModelRecord
from runyard.wire.models import Difference, ModelComparison

_ABOUT = ("description", "framework", "framework_version", "stage", "experiment", "run_id", "snapshot_id", "size")


def compare(models: Models, left: ModelRecord, right: ModelRecord) -> ModelComparison:
    files = [{file.path: file for file in models.files(model.name, model.version)} for model in (left, right)]
    changed = [
        Difference(name, _size(files[0].get(name)), _size(files[1].get(name)))
        for name in sorted(files[0].keys() | files[1].keys())
        if _digest(files[0].get(name)) != _digest(files[1].get(name))
    ]
    about = [Difference(name, getattr(left, name), getattr(right, name)) for name in _ABOUT]
    packages = [packages_in(model.environment_lock or "") for model in (left, right)]
    return ModelComparison(
        left=left.id,
        right=right.id,
        same_files=left.digest == right.digest,
        about=[difference for difference in about if difference.left != difference.right],
        metrics=_compare(left.metrics, right.metrics, include_equal=True),
        tags=_compare(left.tags, right.tags),
        properties=_compare(left.properties, right.properties),
        files=changed,
        packages=_compare(packages[0], packages[1]),
        data=_compare(_inputs(left.data), _inputs(right.data)),
    )


def _compare(left: Mapping[str, Any], right: Mapping[str, Any], *, include_equal: bool = False) -> list[Difference]:
    pairs = [Difference(name, left.get(name), right.get(name)) for name in sorted(left.keys() | right.keys())]
    return [pair for pair in pairs if include_equal or pair.left != pair.right]


def _inputs(data: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Describe each input by name and content: the same path may have had different files."""
    inputs = {}
    for use in data:
        dataset = f"{use['dataset_name']}:{use['dataset_version']}" if use.get("dataset_name") else None
        source = dataset or f"{use['datastore']}/{use['path']}"
        inputs[str(use["name"])] = f"{source} {use['digest'][:12]}" if use.get("digest") else source
    return inputs


def _size(file: Any) -> int | None:
    return None if file is None else int(file.size)


def _digest(file: Any) -> str | None:
    return None if file is None else str(file.digest)
