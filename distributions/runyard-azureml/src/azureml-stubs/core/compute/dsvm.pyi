from runyard.errors import ComputeTargetException as ComputeTargetException
from runyard.sdk.compute_target import ComputeTarget as ComputeTarget
from runyard.sdk.computes_of_v1 import DsvmCompute as DsvmCompute
