"""Runyard: a self-hosted training service.

Public names are imported on first use, so that `import runyard` is fast in a training script.
"""

from __future__ import annotations

TYPE_CHECKING = False  # importing typing takes longer than this module
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"

_MODULES = {
    "AciWebservice": "runyard.sdk.webservice.kinds",
    "AksWebservice": "runyard.sdk.webservice.kinds",
    "AmlCompute": "runyard.sdk.compute.amlcompute",
    "ComputeTarget": "runyard.sdk.compute.target",
    "CondaDependencies": "runyard.sdk.environment.conda_dependencies",
    "ContainerImage": "runyard.sdk.model.image",
    "Dataset": "runyard.sdk.data.dataset",
    "DataReference": "runyard.sdk.data.reference",
    "Datastore": "runyard.sdk.data.registry",
    "Environment": "runyard.sdk.environment.environment",
    "Estimator": "runyard.sdk.training.estimator",
    "Experiment": "runyard.sdk.core.experiment",
    "Gloo": "runyard.sdk.training.distributed",
    "Image": "runyard.sdk.model.image",
    "InferenceConfig": "runyard.sdk.webservice.inference",
    "LocalWebservice": "runyard.sdk.webservice.kinds",
    "Model": "runyard.sdk.model.model",
    "Mpi": "runyard.sdk.training.distributed",
    "MpiConfiguration": "runyard.sdk.training.distributed",
    "Nccl": "runyard.sdk.training.distributed",
    "ParameterServer": "runyard.sdk.training.distributed",
    "PyTorch": "runyard.sdk.training.frameworks",
    "PyTorchConfiguration": "runyard.sdk.training.distributed",
    "RemoteCompute": "runyard.sdk.compute.attached",
    "Resources": "runyard.spec.resources",
    "Run": "runyard.sdk.run.run",
    "RunConfiguration": "runyard.sdk.training.run_configuration",
    "RunDetails": "runyard.sdk.notebook.widget.details",
    "SKLearn": "runyard.sdk.training.frameworks",
    "ScriptRunConfig": "runyard.sdk.training.script_run_config",
    "Secret": "runyard.sdk.core.secrets",
    "SlurmCompute": "runyard.sdk.compute.attached",
    "SshCompute": "runyard.sdk.compute.attached",
    "TensorFlow": "runyard.sdk.training.frameworks",
    "Tensorboard": "runyard.sdk.notebook.tensorboard",
    "TensorflowConfiguration": "runyard.sdk.training.distributed",
    "Webservice": "runyard.sdk.webservice.webservice",
    "Workspace": "runyard.sdk.core.workspace",
    "export_to_tensorboard": "runyard.sdk.notebook.tensorboard_export",
}

__all__ = ["__version__", *sorted(_MODULES)]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'runyard' has no attribute {name!r}")
    value = getattr(__import__(module, fromlist=[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
