from runyard.errors import ComputeTargetException as ComputeTargetException
from runyard.sdk.compute.amlcompute import DsvmCompute as DsvmCompute
from runyard.sdk.compute.target import ComputeTarget as ComputeTarget
