from runyard.sdk.data.file_dataset import FileDataset as FileDataset
from runyard.sdk.data.tabular_dataset import TabularDataset as TabularDataset
