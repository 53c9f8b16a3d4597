"""Dataset: the door to datasets, in the words of the SDK v1."""

from __future__ import annotations

from runyard.sdk import dataset_factory
from runyard.sdk.abstract_dataset import AbstractDataset


class Dataset(AbstractDataset):
    """``Dataset.File`` and ``Dataset.Tabular`` make datasets; ``get_by_name``, ``get_by_id``, ``get_all`` find them."""

    File = dataset_factory.FileDatasetFactory
    Tabular = dataset_factory.TabularDatasetFactory

    class Scenario:
        TRAINING = "training"
        VALIDATION = "validation"
        INFERENCING = "inferencing"
