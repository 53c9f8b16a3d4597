"""Dataset: the door to datasets, in the words of the SDK v1."""

from __future__ import annotations

from typing import Any

from runyard.sdk.data import factory
from runyard.sdk.data.base import AbstractDataset
from runyard.sdk.data.legacy import DatasetOfV1


def _get_by_name(workspace: Any, name: str, version: Any = "latest", **kwargs: Any) -> Any:
    """The newest version of a name, or that one."""
    return AbstractDataset.get_by_name(workspace, name, version)


def _get_by_id(workspace: Any, id: str, **kwargs: Any) -> Any:
    return AbstractDataset.get_by_id(workspace, id)


def _get_all(workspace: Any) -> Any:
    """The newest version of each name, by name."""
    return AbstractDataset.get_all(workspace)


class Dataset(DatasetOfV1):
    """``Dataset.File`` and ``Dataset.Tabular`` make datasets; ``get_by_name``, ``get_by_id``, ``get_all`` find them."""

    File = factory.FileDatasetFactory
    Tabular = factory.TabularDatasetFactory

    # called on the class, with the workspace where a method has its object: so they were in v1
    get_by_name = _get_by_name
    get_by_id = _get_by_id
    get_all = _get_all

    class Scenario:
        TRAINING = "training"
        VALIDATION = "validation"
        INFERENCING = "inferencing"
