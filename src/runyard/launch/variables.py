"""Environment variables of the processes of a run."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Optional

from runyard.posix import sha256
from runyard.spec.folder import RunFolder
from runyard.spec.run import RunSpec

TRACKING_TOKEN = "MLFLOW_TRACKING_TOKEN"
PROCESS_TAG = "RUNYARD_PROCESS_TAG"  # inherited by every process of a run, also by daemons
ROLE = "RUNYARD_ROLE"  # set for a yard and its forkserver, which never belong to a run

# Variables that differ between the processes of a gang or are known only on the node: passed into each container.
PER_PROCESS_VARIABLES = (
    *("RANK", "LOCAL_RANK", "NODE_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"),
    *("GLOO_SOCKET_IFNAME", "TF_CONFIG", "AZ_BATCHAI_TASK_INDEX", "AZ_BATCHAI_PYTORCH_INIT_METHOD"),
    *("AZ_BATCHAI_PS_HOSTS", "AZ_BATCHAI_WORKER_HOSTS", "AZ_BATCHAI_MPI_MASTER_NODE", "AZ_BATCHAI_JOB_MASTER_NODE_IP"),
    *("AZ_BATCH_HOST_LIST", "AZ_BATCH_MASTER_NODE", "AZUREML_CR_NODE_RANK", "RUNYARD_NODE_RANK", "RUNYARD_RANK"),
)

_DROPPED_NAMES = frozenset(
    {
        *("VIRTUAL_ENV", "VIRTUAL_ENV_PROMPT", "PYTHONPATH", "PYTHONHOME", "CUDA_VISIBLE_DEVICES"),
        *("MLFLOW_RUN_ID", "MLFLOW_EXPERIMENT_ID", "MLFLOW_EXPERIMENT_NAME"),  # of the process that started the yard
    }
)
_MLFLOW_RUN_ID = re.compile(r"[a-zA-Z0-9][\w\-]{0,255}")
_DROPPED_PREFIXES = ("RUNYARD_", "AZUREML_", "CONDA_", "_CONDA_")


def run_variables(
    *,
    run_id: str,
    experiment: str,
    spec: RunSpec,
    folder: RunFolder,
    node_package: Path,
    home: Path,
    gpus: Optional[Sequence[int]],
    yard_python: str,
    socket: str,
    subscription: str = "local",
    resource_group: str = "local",
    workspace: str = "runyard",
    tracking: Optional[tuple[str, str]] = None,
) -> dict[str, str]:
    """The variables that depend on the run. PATH and those of the machine come with the prepared environment.

    Args:
        run_id: The id of the run.
        experiment: The name of its experiment.
        spec: Its specification.
        folder: Its folder.
        node_package: The folder with the part of Runyard that scripts import.
        home: The yard's home folder.
        gpus: Indices of the allocated GPUs; empty to hide all of them; None if the machine has none.
        yard_python: The yard's interpreter.
        socket: The yard's socket.
        subscription: For scripts of SDK v1.
        resource_group: For scripts of SDK v1.
        workspace: For scripts of SDK v1.
        tracking: URL and token of the yard's MLflow server, if the script can reach it.
    """
    variables = {"PYTHONUNBUFFERED": "1"}
    if gpus is not None:
        variables["CUDA_VISIBLE_DEVICES"] = ",".join(str(index) for index in gpus)
    variables.update(
        AZUREML_RUN_ID=run_id,
        AZUREML_ARM_SUBSCRIPTION=subscription,
        AZUREML_ARM_RESOURCEGROUP=resource_group,
        AZUREML_ARM_WORKSPACE_NAME=workspace,
        AZUREML_ARM_PROJECT_NAME=experiment,
        AZUREML_RUN_TOKEN="not-a-secret",  # some scripts check that it is set; the socket is protected by its owner
        AZUREML_SERVICE_ENDPOINT=f"unix://{socket}",
    )
    requested = {**spec.environment.variables, **spec.environment_variables}
    if spec.secrets:
        variables["RUNYARD_SECRETS"] = json.dumps({name: variable for variable, name in spec.secrets.items()})
    if (
        tracking is not None and "MLFLOW_TRACKING_URI" not in requested
    ):  # a script with its own server must not get our token
        variables.update(_mlflow_variables(run_id, experiment, *tracking))
    # a copied list of variables must not override how the script finds its yard and how we find its processes
    variables.update((name, value) for name, value in requested.items() if not name.startswith("RUNYARD_"))
    variables["PYTHONPATH"] = ":".join(part for part in (str(node_package), requested.get("PYTHONPATH", "")) if part)
    variables.update(
        RUNYARD_RUN_ID=run_id,
        RUNYARD_RUN_FOLDER=str(folder.root),
        RUNYARD_HOME=str(home),
        RUNYARD_YARD_PYTHON=yard_python,
        RUNYARD_RANK="0",
        RUNYARD_PROCESS_TAG=process_tag(run_id, folder),
    )
    return variables


def _mlflow_variables(run_id: str, experiment: str, url: str, token: str) -> dict[str, str]:
    """Make `mlflow` in a script log to the script's own run without configuration."""
    variables = {
        "MLFLOW_TRACKING_URI": url,
        TRACKING_TOKEN: token,
        "MLFLOW_EXPERIMENT_NAME": experiment,
        # credentials of another server on this machine would be sent instead of the token
        "MLFLOW_TRACKING_USERNAME": "",
        "MLFLOW_TRACKING_PASSWORD": "",
    }
    if _MLFLOW_RUN_ID.fullmatch(run_id):  # the MLflow client refuses other run ids and would end the script
        variables["MLFLOW_RUN_ID"] = run_id
    return variables


def attempt_variables(attempt: int, folder: RunFolder) -> dict[str, str]:
    """The number of the attempt and, from the second on, the folder with the outputs of earlier attempts."""
    variables = {"RUNYARD_ATTEMPT": str(attempt)}
    if attempt > 1:
        variables.update(dict.fromkeys(("RUNYARD_RESUME_FROM", "AZUREML_RESUME_FROM"), str(folder.work / "outputs")))
    return variables


def clean_environment(base: Mapping[str, str]) -> dict[str, str]:
    """The environment without variables of the yard's Python, of a run, or of an active conda environment."""
    return {
        name: value
        for name, value in base.items()
        if name not in _DROPPED_NAMES and not name.startswith(_DROPPED_PREFIXES)
    }


def process_tag(run_id: str, folder: RunFolder) -> str:
    """Tag of a run's processes; different for the same run id in different home folders."""
    return f"{run_id}@{sha256.of_text(str(folder.root))[:12]}"
