from runyard.sdk.data.file_dataset import FileDataset as FileDataset
