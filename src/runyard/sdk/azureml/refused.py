"""Names of the SDK v1 that nothing here answers to: what Azure did behind them, and what to do instead.

Read when one of them is asked for, so that a training script which asks for none does not pay for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Service:
    what: str
    remedy: str


_PIPELINES = Service(
    "pipelines of Azure ML", "submit the steps one after another: each is a run, its outputs the next one's data"
)
_AUTOML = Service("automated ML, a service of Azure", "a sweep over scripts of your own: HyperDriveConfig is here")
KEYS = Service(
    "Azure Key Vault", "give secrets to a run with environment_variables; run.get_secret(name) reads them there"
)
SPARK = Service("Spark clusters of Azure", "run Spark's own programs in a script, with pyspark among its pip_packages")
_KUBERNETES = Service(
    "Kubernetes clusters of Azure", "a service on this machine: AciWebservice and AksWebservice are here"
)
_EXPLAIN = Service("explanations kept in Azure", "use the package that it wraps, and keep what it says under outputs/")
_DATA = Service("open datasets served by Azure", "put the files into a datastore once: Datastore.upload")

MODULES = {
    "azureml.pipeline": _PIPELINES,
    "azureml.train.automl": _AUTOML,
    "azureml.automl": _AUTOML,
    "azureml.core.keyvault": KEYS,
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
    "azureml.contrib": Service(
        "a preview of Azure ML", "azureml.contrib.services and azureml.contrib.tensorboard are here"
    ),
}

CLASSES = {
    "AksCompute": _KUBERNETES,
    "AksEndpoint": _KUBERNETES,
    "KubernetesCompute": _KUBERNETES,
    "ComputeInstance": Service("workstations of Azure", "this machine is one"),
    "DatabricksCompute": SPARK,
    "HDInsightCompute": SPARK,
    "SynapseCompute": SPARK,
    "AdlaCompute": SPARK,
    "DataFactoryCompute": Service("Azure Data Factory", "Datastore.upload and download move data"),
    "BatchCompute": Service("Azure Batch", "a cluster: AmlCompute, or a Slurm partition"),
    "Keyvault": KEYS,
    "PrivateEndPoint": Service("networks of Azure", "leave it out: a yard listens to its owner only"),
    "ParallelRunConfig": _PIPELINES,
    "ParallelRunStep": _PIPELINES,
    "Pipeline": _PIPELINES,
    "PipelineData": _PIPELINES,
    "PythonScriptStep": _PIPELINES,
}

# what needs no service of Azure's, and is done here by another name
OTHERWISE = {
    "ModelPackage": Service(
        "images that Azure built of models", "Model.deploy(…) serves them here, model.download() gives their files"
    ),
    "OutputFileDatasetConfig": Service(
        "outputs that Azure made datasets of",
        "datastore.path('results').as_upload() among the arguments: what the script writes there goes to the datastore",
    ),
}


def of_class(name: str) -> Service | None:
    return CLASSES.get(name) or OTHERWISE.get(name)


def of_module(path: str, modules: Mapping[str, Service] = MODULES) -> Service | None:
    """Its own, or that of the package which it is in."""
    while path:
        if path in modules:
            return modules[path]
        path = path.rpartition(".")[0]
    return None


def why_not(name: str) -> str:
    """Of ``azureml.core.Keyvault`` or ``azureml.pipeline``, after a colon: the reason, and what to do instead."""
    service = of_class(name.rpartition(".")[2]) or of_module(name)
    if service is not None:
        return f"it stands for {service.what}. Instead: {service.remedy}"
    return "Runyard answers for a part of the SDK v1 (`runyard migrate PATH` says what of a script is not in it)"
