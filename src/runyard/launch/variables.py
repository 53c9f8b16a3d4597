"""The variables that a run brings to its processes, and what of a machine's own environment goes with them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Optional

from runyard.spec.folder import RunFolder
from runyard.spec.run import RunSpec

PROCESS_TAG = "RUNYARD_PROCESS_TAG"  # every process of a run inherits it, wherever it went
ROLE = "RUNYARD_ROLE"  # carried by a yard and its nursery: never counted among the processes of a run

# What tells the processes of a gang apart, or is known on the node only: it is handed into each one's container.
OF_ONE_PROCESS = (
    *("RANK", "LOCAL_RANK", "NODE_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"),
    *("GLOO_SOCKET_IFNAME", "TF_CONFIG", "AZ_BATCHAI_TASK_INDEX", "AZ_BATCHAI_PYTORCH_INIT_METHOD"),
    *("AZ_BATCHAI_PS_HOSTS", "AZ_BATCHAI_WORKER_HOSTS", "AZ_BATCHAI_MPI_MASTER_NODE", "AZ_BATCHAI_JOB_MASTER_NODE_IP"),
    *("AZ_BATCH_HOST_LIST", "AZ_BATCH_MASTER_NODE", "AZUREML_CR_NODE_RANK", "RUNYARD_NODE_RANK", "RUNYARD_RANK"),
)

_DROPPED_NAMES = frozenset(
    {
        *("VIRTUAL_ENV", "VIRTUAL_ENV_PROMPT", "PYTHONPATH", "PYTHONHOME", "CUDA_VISIBLE_DEVICES"),
        *("MLFLOW_RUN_ID", "MLFLOW_EXPERIMENT_ID", "MLFLOW_EXPERIMENT_NAME"),  # of what started the yard
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
    kit: Path,
    home: Path,
    gpus: Optional[Sequence[int]],
    yard_python: str,
    socket: str,
    subscription: str = "local",
    resource_group: str = "local",
    workspace: str = "runyard",
    tracking: Optional[tuple[str, str]] = None,
) -> dict[str, str]:
    """Only the run's own: the machine's, and PATH, come from whoever prepared the environment.

    ``gpus`` are the indices that the queue gave; an empty sequence hides the machine's GPUs from a run that asked
    for none; None means that the machine has none, and leaves the matter alone. ``tracking`` is the yard's address and
    its token, where the script can reach it.
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
        AZUREML_RUN_TOKEN="not-a-secret",  # scripts check that it is there; the socket's owner is the key
        AZUREML_SERVICE_ENDPOINT=f"unix://{socket}",
    )
    asked = {**spec.environment.variables, **spec.environment_variables}
    if tracking is not None and "MLFLOW_TRACKING_URI" not in asked:  # else the rest would be said to another server
        variables.update(_mlflow_variables(run_id, experiment, *tracking))
    # The script must find its yard and we must find its processes, whatever a copied list of variables says.
    variables.update((name, value) for name, value in asked.items() if not name.startswith("RUNYARD_"))
    variables["PYTHONPATH"] = ":".join(part for part in (str(kit), asked.get("PYTHONPATH", "")) if part)
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
    """With these, what a script says to `mlflow` without further ado is said to its own run."""
    variables = {
        "MLFLOW_TRACKING_URI": url,
        "MLFLOW_TRACKING_TOKEN": token,
        "MLFLOW_EXPERIMENT_NAME": experiment,
        # those of another server that the machine may know: they would be sent in place of the token
        "MLFLOW_TRACKING_USERNAME": "",
        "MLFLOW_TRACKING_PASSWORD": "",
    }
    if _MLFLOW_RUN_ID.fullmatch(run_id):  # MLflow's client ends a script whose run has another kind of id
        variables["MLFLOW_RUN_ID"] = run_id
    return variables


def attempt_variables(attempt: int, folder: RunFolder) -> dict[str, str]:
    """Which attempt it is; from the second on, where the ones before left what they had written to `outputs`."""
    variables = {"RUNYARD_ATTEMPT": str(attempt)}
    if attempt > 1:
        variables.update(dict.fromkeys(("RUNYARD_RESUME_FROM", "AZUREML_RESUME_FROM"), str(folder.work / "outputs")))
    return variables


def clean(base: Mapping[str, str]) -> dict[str, str]:
    """A yard's environment without what belongs to the yard's own Python, to a run, or to somebody's conda."""
    return {
        name: value
        for name, value in base.items()
        if name not in _DROPPED_NAMES and not name.startswith(_DROPPED_PREFIXES)
    }


def process_tag(run_id: str, folder: RunFolder) -> str:
    """The same run id in two homes gives two tags."""
    return f"{run_id}@{hashlib.sha256(str(folder.root).encode('utf-8', 'surrogateescape')).hexdigest()[:12]}"
