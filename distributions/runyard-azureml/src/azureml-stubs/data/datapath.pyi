from runyard.sdk.data_reference import DataPath as DataPath
from runyard.sdk.data_reference import DataPathComputeBinding as DataPathComputeBinding
from runyard.sdk.data_reference import DataReference as DataReference
