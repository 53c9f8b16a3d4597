from runyard.sdk.data.base import AbstractDataset as AbstractDataset
from runyard.sdk.data.consumption import DatasetConsumptionConfig as DatasetConsumptionConfig
from runyard.sdk.data.factory import FileDatasetFactory as FileDatasetFactory
