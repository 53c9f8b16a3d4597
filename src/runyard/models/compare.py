"""Two versions side by side: what differs between them, and all of their metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runyard.environments.lock_diff import packages_in
from runyard.models.registry import Models
from runyard.store.models import ModelRecord
from runyard.wire.models import Difference, ModelComparison

_ABOUT = ("description", "framework", "framework_version", "stage", "experiment", "run_id", "snapshot_id", "size")


def compare(models: Models, left: ModelRecord, right: ModelRecord) -> ModelComparison:
    files = [{file.path: file for file in models.files(one.name, one.version)} for one in (left, right)]
    changed = [
        Difference(name, _size(files[0].get(name)), _size(files[1].get(name)))
        for name in sorted(files[0].keys() | files[1].keys())
        if _content(files[0].get(name)) != _content(files[1].get(name))
    ]
    about = [Difference(name, getattr(left, name), getattr(right, name)) for name in _ABOUT]
    packages = [packages_in(one.environment_lock or "") for one in (left, right)]
    return ModelComparison(
        left=left.id,
        right=right.id,
        same_files=left.digest == right.digest,
        about=[one for one in about if one.left != one.right],
        metrics=_side_by_side(left.metrics, right.metrics, all_of_them=True),
        tags=_side_by_side(left.tags, right.tags),
        properties=_side_by_side(left.properties, right.properties),
        files=changed,
        packages=_side_by_side(packages[0], packages[1]),
        data=_side_by_side(_inputs(left.data), _inputs(right.data)),
    )


def _side_by_side(left: Mapping[str, Any], right: Mapping[str, Any], *, all_of_them: bool = False) -> list[Difference]:
    names = sorted(left.keys() | right.keys())
    found = [Difference(name, left.get(name), right.get(name)) for name in names]
    return [one for one in found if all_of_them or one.left != one.right]


def _inputs(data: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Told by what it was and by its content: the same path may have had other files in it."""
    told = {}
    for use in data:
        what = f"{use['dataset_name']}:{use['dataset_version']}" if use.get("dataset_name") else None
        place = what or f"{use['datastore']}/{use['path']}"
        told[str(use["name"])] = f"{place} {use['digest'][:12]}" if use.get("digest") else place
    return told


def _size(file: Any) -> int | None:
    return None if file is None else int(file.size)


def _content(file: Any) -> str | None:
    return None if file is None else str(file.digest)
