"""The data of a run, as asked for: which part of which datastore, and how it comes to the script, or from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

MOUNT, DOWNLOAD, UPLOAD = "mount", "download", "upload"
MODES = (MOUNT, DOWNLOAD, UPLOAD)
VARIABLE = "AZUREML_DATAREFERENCE_"  # and the name of the use: where the script finds the path
DATASET_ARGUMENT = "DatasetConsumptionConfig:"  # and the name of the input: what stands on the command line for it
DEFAULT_STORE = "workspaceblobstore"  # made with the yard, in its home
RUN_FILES = "workspaceartifactstore"  # the files that runs left, to be read
RESUME_ARGUMENT, RESUMED = "--resume-from", "MODEL_LOCATION"  # how a run is given what it goes on from


def place_of_run_file(run_id: str, path: str) -> str:
    """In the datastore of runs' files, and in the addresses that the SDK v1 prints."""
    return f"ExperimentRun/dcid.{run_id}/{path}"


@dataclass(frozen=True)
class DatasetUse:
    """Which dataset it was; all three are kept in the run's record."""

    id: str
    name: Optional[str] = None  # None: it was never registered
    version: Optional[int] = None
    digest: Optional[str] = None  # of its content when the run was submitted, or prepared
    direct: bool = False  # the script gets the dataset itself of run.input_datasets, not a path


@dataclass(frozen=True)
class DataUse:
    name: str
    datastore: str = DEFAULT_STORE  # of a dataset: that of its first source, to be shown
    path: str = ""  # below the datastore's root; "" = all of it
    mode: str = MOUNT
    path_on_compute: Optional[str] = None  # None: a place of our own; relative: below the working directory
    overwrite: bool = False  # of an upload: files that are there already
    dataset: Optional[DatasetUse] = None

    @property
    def variables(self) -> tuple[str, ...]:
        """The names under which a process finds the path."""
        reference = f"{VARIABLE}{self.name}"
        return (reference, self.name) if self.dataset is not None else (reference,)

    @property
    def label(self) -> str:
        """What people are told: their own name for it, or the place, where the name is a random one."""
        is_random = len(self.name) == 32 and all(letter in "0123456789abcdef" for letter in self.name)
        return (f"{self.datastore}/{self.path}" if self.path else self.datastore) if is_random else self.name

    @property
    def placeholder(self) -> str:
        """What stands for the path in the arguments."""
        return f"{DATASET_ARGUMENT}{self.name}" if self.dataset is not None else f"${VARIABLE}{self.name}"
