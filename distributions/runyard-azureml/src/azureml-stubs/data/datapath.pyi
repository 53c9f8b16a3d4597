from runyard.sdk.data.reference import DataPath as DataPath
from runyard.sdk.data.reference import DataPathComputeBinding as DataPathComputeBinding
from runyard.sdk.data.reference import DataReference as DataReference
