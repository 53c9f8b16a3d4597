from runyard.sdk.dataset import Dataset as Dataset
