from runyard.sdk.data.dataset import Dataset as Dataset
