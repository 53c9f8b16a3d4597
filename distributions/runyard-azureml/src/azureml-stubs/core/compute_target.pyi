from runyard.errors import ComputeTargetException as ComputeTargetException
from runyard.sdk.compute.amlcompute import AmlCompute as AmlCompute
from runyard.sdk.compute.attached import RemoteCompute as RemoteCompute
from runyard.sdk.compute.target import ComputeTarget as ComputeTarget
