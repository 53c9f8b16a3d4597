from runyard.errors import ComputeTargetException as ComputeTargetException
from runyard.sdk.amlcompute_status import AmlComputeStatus as AmlComputeStatus
from runyard.sdk.compute_target import AmlCompute as AmlCompute
from runyard.sdk.compute_target import ComputeTarget as ComputeTarget
