from runyard.sdk.data.factory import DataType as DataType
from runyard.sdk.data.factory import FileDatasetFactory as FileDatasetFactory
from runyard.sdk.data.factory import TabularDatasetFactory as TabularDatasetFactory
from runyard.sdk.data.reference import DataReference as DataReference
