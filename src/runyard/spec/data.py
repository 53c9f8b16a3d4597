"""Data inputs and outputs of a run: a path in a datastore or a dataset, and how it reaches the script."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

MOUNT, DOWNLOAD, UPLOAD = "mount", "download", "upload"
MODES = (MOUNT, DOWNLOAD, UPLOAD)
REFERENCE_VARIABLE_PREFIX = "AZUREML_DATAREFERENCE_"  # followed by the name: the variable with the path
DATASET_ARGUMENT_PREFIX = "DatasetConsumptionConfig:"  # followed by the name: its placeholder in the arguments
DEFAULT_STORE = "workspaceblobstore"  # created with the yard, in its home folder
RUN_FILES_STORE = "workspaceartifactstore"  # read-only: the stored files of runs
RESUME_ARGUMENT, RESUME_INPUT = "--resume-from", "MODEL_LOCATION"  # how a run receives the files that it resumes from


def run_file_path(run_id: str, path: str) -> str:
    """Path of a run's file in the datastore of run files, and in the URIs of SDK v1."""
    return f"ExperimentRun/dcid.{run_id}/{path}"


@dataclass(frozen=True)
class DatasetUse:
    """The dataset of an input, as recorded with the run."""

    id: str
    name: Optional[str] = None  # None: not registered
    version: Optional[int] = None
    digest: Optional[str] = None  # of the content when the run was submitted or prepared
    direct: bool = False  # the script gets a dataset object from run.input_datasets instead of a path


@dataclass(frozen=True)
class DataUse:
    name: str
    datastore: str = DEFAULT_STORE  # for a dataset: the datastore of its first source, for display
    path: str = ""  # below the datastore's root; "" = the root
    mode: str = MOUNT
    path_on_compute: Optional[str] = None  # None: chosen by Runyard; relative: below the working directory
    overwrite: bool = False  # for uploads: replace existing files
    dataset: Optional[DatasetUse] = None

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that contain the path."""
        reference = f"{REFERENCE_VARIABLE_PREFIX}{self.name}"
        return (reference, self.name) if self.dataset is not None else (reference,)

    @property
    def label(self) -> str:
        """Name for messages: the user's name, or datastore and path if the name was generated."""
        is_generated = len(self.name) == 32 and all(character in "0123456789abcdef" for character in self.name)
        return (f"{self.datastore}/{self.path}" if self.path else self.datastore) if is_generated else self.name

    @property
    def placeholder(self) -> str:
        """The text in the arguments that is replaced by the path."""
        return (
            f"{DATASET_ARGUMENT_PREFIX}{self.name}"
            if self.dataset is not None
            else f"${REFERENCE_VARIABLE_PREFIX}{self.name}"
        )
