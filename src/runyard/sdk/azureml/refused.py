"""Names of the SDK v1 that Runyard does not provide: the Azure service behind each, and the alternative.

Imported only when one of them is used, so that other training scripts do not pay for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Service:
    description: str
    alternative: str


_PIPELINES = Service("pipelines of Azure ML", "submit each step as a run, with the outputs of the previous one as data")
_AUTOML = Service("automated ML, a service of Azure", "run a sweep over your own scripts with HyperDriveConfig")
KEYS = Service("Azure Key Vault", "store secrets with `runyard secrets set`; run.get_secret(name) reads them in a run")
SPARK = Service("Spark clusters of Azure", "run Spark in a script, with pyspark in its pip_packages")
_KUBERNETES = Service("Kubernetes clusters of Azure", "deploy on this machine with AciWebservice or AksWebservice")
_EXPLAIN = Service("explanations stored in Azure", "use the wrapped package, and write its results to outputs/")
_DATA = Service("open datasets served by Azure", "upload the files to a datastore once with Datastore.upload")

MODULES = {
    "azureml.pipeline": _PIPELINES,
    "azureml.train.automl": _AUTOML,
    "azureml.automl": _AUTOML,
    "azureml.contrib.pipeline": _PIPELINES,
    "azureml.contrib.notebook": Service(
        "notebooks as steps of runs", "convert it to a script: jupyter nbconvert --to script"
    ),
    "azureml.explain": _EXPLAIN,
    "azureml.interpret": _EXPLAIN,
    "azureml.contrib.interpret": _EXPLAIN,
    "azureml.contrib.fairness": _EXPLAIN,
    "azureml.opendatasets": _DATA,
    "azureml.dataprep": Service(
        "data preparation by Azure's engine", "use pandas in the script; Dataset.Tabular reads tables"
    ),
    "azureml.datadrift": Service("drift monitors of Azure", "compare two versions of a dataset in a script"),
    "azureml.monitoring": Service(
        "collecting a service's inputs in Azure", "log them in the scoring script, or read the log of the service"
    ),
    "azureml.accel": Service("FPGAs of Azure", "serve such models with ONNX Runtime on CPUs and GPUs"),
    "azureml.contrib": Service("a preview of Azure ML", "use azureml.contrib.services or azureml.contrib.tensorboard"),
}

CLASSES = {
    "AksCompute": _KUBERNETES,
    "AksEndpoint": _KUBERNETES,
    "KubernetesCompute": _KUBERNETES,
    "ComputeInstance": Service("workstations of Azure", "use this machine"),
    "DatabricksCompute": SPARK,
    "HDInsightCompute": SPARK,
    "SynapseCompute": SPARK,
    "AdlaCompute": SPARK,
    "DataFactoryCompute": Service("Azure Data Factory", "move data with Datastore.upload and download"),
    "BatchCompute": Service("Azure Batch", "use a cluster: AmlCompute, or a Slurm partition"),
    "PrivateEndPoint": Service("networks of Azure", "leave it out: a yard accepts only its owner"),
    "ParallelRunConfig": _PIPELINES,
    "ParallelRunStep": _PIPELINES,
    "Pipeline": _PIPELINES,
    "PipelineData": _PIPELINES,
    "PythonScriptStep": _PIPELINES,
}

# names that need no Azure service, and have another name in Runyard
RENAMED = {
    "ModelPackage": Service(
        "images that Azure built of models", "Model.deploy(…) serves models, model.download() downloads their files"
    ),
    "OutputFileDatasetConfig": Service(
        "outputs that Azure converted to datasets",
        "datastore.path('results').as_upload() as an argument: files that the script writes there are uploaded",
    ),
}


def find_class(name: str) -> Service | None:
    return CLASSES.get(name) or RENAMED.get(name)


def find_module(path: str, modules: Mapping[str, Service] = MODULES) -> Service | None:
    """Return the entry of a module or of the package that contains it."""
    while path:
        if path in modules:
            return modules[path]
        path = path.rpartition(".")[0]
    return None


def refusal(name: str) -> str:
    """Return the reason and the alternative for a name such as ``azureml.core.Keyvault``."""
    service = find_class(name.rpartition(".")[2]) or find_module(name)
    if service is not None:
        return f"it belongs to {service.description}. Instead: {service.alternative}"
    return "Runyard provides a part of the SDK v1 (`runyard migrate PATH` lists the names of a script that are missing)"
