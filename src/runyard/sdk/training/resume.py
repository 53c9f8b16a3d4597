"""Resuming from the outputs of an earlier run: the parameter `resume_from`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runyard.errors import UserErrorException
from runyard.sdk.core import validation
from runyard.spec.data import RESUME_ARGUMENT, RESUME_INPUT, RUN_FILES_STORE, run_file_path

if TYPE_CHECKING:
    from runyard.sdk.data.reference import DataPath
    from runyard.sdk.run.files import RunFiles

_OUTPUTS = "outputs"


def resume_arguments(resume_from: Any) -> list[Any]:
    """Return ``--resume-from`` and its path; ``AZUREML_DATAREFERENCE_MODEL_LOCATION`` contains the same path."""
    if resume_from is None:
        return []
    from runyard.sdk.data.reference import DataPath

    if not isinstance(resume_from, DataPath):
        raise validation.invalid(
            "resume_from",
            resume_from,
            "a DataPath",
            error=UserErrorException,
            hint="run._get_outputs_datapath() returns an earlier run's outputs; DataPath(ds, 'folder') is any folder",
        )
    return [RESUME_ARGUMENT, resume_from.create_data_reference(RESUME_INPUT)]


def outputs_datapath(run: RunFiles) -> DataPath:
    """Return the outputs of a run in the yard's datastore of run files."""
    from runyard.sdk.data.reference import DataPath
    from runyard.sdk.data.registry import Datastore

    if not any(name.startswith(f"{_OUTPUTS}/") for name in run.get_file_names()):
        raise UserErrorException(
            f"run {run.id} has no outputs to resume from",
            hint="outputs are the files that a script writes to ./outputs",
        )
    return DataPath(Datastore.get(run.experiment.workspace, RUN_FILES_STORE), run_file_path(run.id, _OUTPUTS))
