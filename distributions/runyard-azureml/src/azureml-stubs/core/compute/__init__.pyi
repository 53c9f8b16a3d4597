from runyard.sdk.compute.amlcompute import AmlCompute as AmlCompute
from runyard.sdk.compute.amlcompute import BatchAiCompute as BatchAiCompute
from runyard.sdk.compute.amlcompute import DsvmCompute as DsvmCompute
from runyard.sdk.compute.attached import RemoteCompute as RemoteCompute
from runyard.sdk.compute.hdinsight import HDInsightCompute as HDInsightCompute
from runyard.sdk.compute.target import ComputeTarget as ComputeTarget
