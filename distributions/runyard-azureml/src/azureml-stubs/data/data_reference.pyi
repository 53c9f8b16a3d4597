from runyard.sdk.data_reference import DataReference as DataReference
