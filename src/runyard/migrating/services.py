"""What Azure did and nothing here does: by module, class, member and command."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Service:
    what: str
    remedy: str


_PIPELINES = Service(
    "pipelines of Azure ML", "submit the steps one after another: each is a run, its outputs the next one's data"
)
_AUTOML = Service("automated ML, a service of Azure", "a sweep over scripts of your own: HyperDriveConfig is here")
_KEYS = Service(
    "Azure Key Vault", "give secrets to a run with environment_variables; run.get_secret(name) reads them there"
)
_SPARK = Service("Spark clusters of Azure", "run Spark's own programs in a script, with pyspark among its pip_packages")
_KUBERNETES = Service(
    "Kubernetes clusters of Azure", "a service on this machine: AciWebservice and AksWebservice are here"
)
_STORAGE = Service(
    "Azure's storage by its own client", "a datastore: ws.get_default_datastore(), or one registered under a name"
)
_EXPLAIN = Service("explanations kept in Azure", "use the package that it wraps, and keep what it says under outputs/")
_DATA = Service("open datasets served by Azure", "put the files into a datastore once: Datastore.upload")
_LOGIN = Service("signing in to Azure", "leave it out: a yard is opened by the user who owns it")
_V2 = Service("the SDK v2", "only the SDK v1 is here")

MODULES = {
    "azureml.pipeline": _PIPELINES,
    "azureml.train.automl": _AUTOML,
    "azureml.automl": _AUTOML,
    "azureml.core.keyvault": _KEYS,
    "azureml.contrib.pipeline": _PIPELINES,
    "azureml.contrib.notebook": Service(
        "notebooks as steps of runs", "make a script of it: jupyter nbconvert --to script"
    ),
    "azureml.explain": _EXPLAIN,
    "azureml.interpret": _EXPLAIN,
    "azureml.contrib.interpret": _EXPLAIN,
    "azureml.contrib.fairness": _EXPLAIN,
    "azureml.opendatasets": _DATA,
    "azureml.dataprep": Service(
        "data preparation by Azure's engine", "pandas in the script; Dataset.Tabular reads tables"
    ),
    "azureml.datadrift": Service(
        "drift monitors of Azure", "a script of yours that compares two versions of a dataset"
    ),
    "azureml.monitoring": Service(
        "collecting a service's inputs in Azure", "write them in the scoring script, or read the service's log"
    ),
    "azureml.accel": Service("FPGAs of Azure", "ONNX Runtime serves such models on processors and GPUs"),
    "azureml.contrib": Service("a preview of Azure ML", "only azureml.contrib.tensorboard is here"),
    "azure.ai.ml": _V2,
    "azure.identity": _LOGIN,
    "azure.keyvault": _KEYS,
    "azure.storage": _STORAGE,
    "azure.datalake": _STORAGE,
    "azure.mgmt": Service("resources of Azure", "there are none to manage"),
    "azure.cli": _LOGIN,
    "azure.common": _LOGIN,
    "msrest": _LOGIN,
    "msrestazure": _LOGIN,
}

CLASSES = {
    "AksCompute": _KUBERNETES,
    "AksEndpoint": _KUBERNETES,
    "KubernetesCompute": _KUBERNETES,
    "ComputeInstance": Service("workstations of Azure", "this machine is one"),
    "DatabricksCompute": _SPARK,
    "HDInsightCompute": _SPARK,
    "SynapseCompute": _SPARK,
    "AdlaCompute": _SPARK,
    "DataFactoryCompute": Service("Azure Data Factory", "Datastore.upload and download move data"),
    "BatchCompute": Service("Azure Batch", "a cluster: AmlCompute, or a Slurm partition"),
    "Keyvault": _KEYS,
    "PrivateEndPoint": Service("networks of Azure", "leave it out: a yard listens to its owner only"),
    "ParallelRunConfig": _PIPELINES,
    "ParallelRunStep": _PIPELINES,
    "Pipeline": _PIPELINES,
    "PipelineData": _PIPELINES,
    "PythonScriptStep": _PIPELINES,
}

MEMBERS = {
    "Workspace.get_default_keyvault": _KEYS,
}

COMMANDS = {
    "az": Service("Azure's command line", "leave it out: there is no account, and `runyard` is the command line here"),
    "azcopy": _STORAGE,
    "databricks": _SPARK,
}


def of_module(path: str) -> Service | None:
    while path:
        if path in MODULES:
            return MODULES[path]
        path = path.rpartition(".")[0]
    return None
