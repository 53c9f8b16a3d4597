from runyard.sdk.data.reference import DataReference as DataReference
