from runyard.sdk.file_dataset import FileDataset as FileDataset
from runyard.sdk.tabular_dataset import TabularDataset as TabularDataset
