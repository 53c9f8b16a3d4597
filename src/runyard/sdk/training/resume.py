"""Going on from what an earlier run left: `resume_from` of a run is the place of another one's outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runyard.errors import UserErrorException
from runyard.sdk.core import validation
from runyard.spec.data import RESUME_ARGUMENT, RESUMED, RUN_FILES, place_of_run_file

if TYPE_CHECKING:
    from runyard.sdk.data.reference import DataPath
    from runyard.sdk.run.run import Run

_OUTPUTS = "outputs"


def resume_arguments(resume_from: Any) -> list[Any]:
    """``--resume-from`` and the place, which the script has in ``AZUREML_DATAREFERENCE_MODEL_LOCATION`` too."""
    if resume_from is None:
        return []
    from runyard.sdk.data.reference import DataPath

    if not isinstance(resume_from, DataPath):
        raise validation.wrong(
            "resume_from",
            resume_from,
            "a DataPath",
            error=UserErrorException,
            hint="run._get_outputs_datapath() is that of an earlier run's outputs, DataPath(ds, 'folder') any other",
        )
    return [RESUME_ARGUMENT, resume_from.create_data_reference(RESUMED)]


def outputs_datapath(run: Run) -> DataPath:
    """The outputs of a run where the yard keeps them, from where they come to any target."""
    from runyard.sdk.data.datastore import get
    from runyard.sdk.data.reference import DataPath

    if not any(name.startswith(f"{_OUTPUTS}/") for name in run.get_file_names()):
        raise UserErrorException(
            f"run {run.id} has no outputs to go on from", hint="a script's outputs are what it writes to ./outputs"
        )
    return DataPath(get(run.experiment.workspace, RUN_FILES), place_of_run_file(run.id, _OUTPUTS))
