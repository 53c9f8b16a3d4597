from runyard.errors import ComputeTargetException as ComputeTargetException
from runyard.sdk.compute.amlcompute import AmlCompute as AmlCompute
from runyard.sdk.compute.amlcompute_status import AmlComputeStatus as AmlComputeStatus
from runyard.sdk.compute.target import ComputeTarget as ComputeTarget
