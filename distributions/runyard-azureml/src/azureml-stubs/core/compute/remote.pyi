from runyard.errors import ComputeTargetException as ComputeTargetException
from runyard.sdk.clusters import RemoteCompute as RemoteCompute
from runyard.sdk.compute_target import ComputeTarget as ComputeTarget
