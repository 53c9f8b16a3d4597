from runyard.sdk.file_dataset import FileDataset as FileDataset
