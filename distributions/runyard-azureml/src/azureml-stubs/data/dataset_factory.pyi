from runyard.sdk.data_reference import DataReference as DataReference
from runyard.sdk.dataset_factory import DataType as DataType
from runyard.sdk.dataset_factory import FileDatasetFactory as FileDatasetFactory
from runyard.sdk.dataset_factory import TabularDatasetFactory as TabularDatasetFactory
