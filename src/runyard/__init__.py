"""Runyard: a training service on your own machines. The public names, and nothing else.

Names resolve on first use, so that `import runyard` costs nothing in a training script.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing itself takes longer to import than this module
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"

_HOME_OF = {
    "AciWebservice": "runyard.sdk.webservice_kinds",
    "AksWebservice": "runyard.sdk.webservice_kinds",
    "AmlCompute": "runyard.sdk.compute_target",
    "ComputeTarget": "runyard.sdk.compute_target",
    "CondaDependencies": "runyard.sdk.conda_dependencies",
    "ContainerImage": "runyard.sdk.image",
    "Dataset": "runyard.sdk.dataset",
    "DataReference": "runyard.sdk.data_reference",
    "Datastore": "runyard.sdk.datastores",
    "Environment": "runyard.sdk.environment",
    "Estimator": "runyard.sdk.estimator",
    "Experiment": "runyard.sdk.experiment",
    "Gloo": "runyard.sdk.distributed",
    "Image": "runyard.sdk.image",
    "InferenceConfig": "runyard.sdk.inference",
    "LocalWebservice": "runyard.sdk.webservice_kinds",
    "Model": "runyard.sdk.model",
    "Mpi": "runyard.sdk.distributed",
    "MpiConfiguration": "runyard.sdk.distributed",
    "Nccl": "runyard.sdk.distributed",
    "ParameterServer": "runyard.sdk.distributed",
    "PyTorch": "runyard.sdk.frameworks",
    "PyTorchConfiguration": "runyard.sdk.distributed",
    "RemoteCompute": "runyard.sdk.clusters",
    "Resources": "runyard.spec.resources",
    "Run": "runyard.sdk.run",
    "RunConfiguration": "runyard.sdk.run_configuration",
    "RunDetails": "runyard.sdk.widget.details",
    "SKLearn": "runyard.sdk.frameworks",
    "ScriptRunConfig": "runyard.sdk.script_run_config",
    "SlurmCompute": "runyard.sdk.clusters",
    "SshCompute": "runyard.sdk.clusters",
    "TensorFlow": "runyard.sdk.frameworks",
    "Tensorboard": "runyard.sdk.tensorboard",
    "TensorflowConfiguration": "runyard.sdk.distributed",
    "Webservice": "runyard.sdk.webservice",
    "Workspace": "runyard.sdk.workspace",
    "export_to_tensorboard": "runyard.sdk.tensorboard_export",
}

__all__ = ["__version__", *sorted(_HOME_OF)]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'runyard' has no attribute {name!r}")
    value = getattr(__import__(home, fromlist=[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
