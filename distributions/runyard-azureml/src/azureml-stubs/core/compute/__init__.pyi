from runyard.sdk.clusters import RemoteCompute as RemoteCompute
from runyard.sdk.compute_target import AmlCompute as AmlCompute
from runyard.sdk.compute_target import ComputeTarget as ComputeTarget
from runyard.sdk.computes_of_v1 import BatchAiCompute as BatchAiCompute
from runyard.sdk.computes_of_v1 import DsvmCompute as DsvmCompute
from runyard.sdk.computes_of_v1 import HDInsightCompute as HDInsightCompute
