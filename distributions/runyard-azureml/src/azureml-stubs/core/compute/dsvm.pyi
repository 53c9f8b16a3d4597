from runyard.errors import ComputeTargetException as ComputeTargetException
from runyard.sdk.compute.legacy import DsvmCompute as DsvmCompute
from runyard.sdk.compute.target import ComputeTarget as ComputeTarget
