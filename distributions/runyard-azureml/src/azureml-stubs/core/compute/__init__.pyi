from runyard.sdk.compute.attached import RemoteCompute as RemoteCompute
from runyard.sdk.compute.legacy import BatchAiCompute as BatchAiCompute
from runyard.sdk.compute.legacy import DsvmCompute as DsvmCompute
from runyard.sdk.compute.legacy import HDInsightCompute as HDInsightCompute
from runyard.sdk.compute.target import AmlCompute as AmlCompute
from runyard.sdk.compute.target import ComputeTarget as ComputeTarget
