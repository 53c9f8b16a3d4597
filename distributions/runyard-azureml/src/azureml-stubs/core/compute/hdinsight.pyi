from runyard.errors import ComputeTargetException as ComputeTargetException
from runyard.sdk.compute.hdinsight import HDInsightCompute as HDInsightCompute
from runyard.sdk.compute.target import ComputeTarget as ComputeTarget
