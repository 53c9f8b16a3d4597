"""A dataset as the input of a run: under which name, and how it comes to the script."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Optional

from runyard.errors import UserErrorException
from runyard.sdk.azureml import no_effect
from runyard.sdk.core import validation
from runyard.spec.data import DATASET_ARGUMENT, DOWNLOAD, MOUNT
from runyard.spec.dataset import DIRECT, FILE

if TYPE_CHECKING:
    from runyard.sdk.core.workspace import Workspace
    from runyard.sdk.data.base import AbstractDataset
    from runyard.spec.data import DataUse

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MODES = (DIRECT, MOUNT, DOWNLOAD)


class DatasetConsumptionConfig:
    """``dataset.as_named_input('mnist').as_mount()``: for `script_params`, `arguments` and `inputs`.

    On the command line it stands for the path that the data has where the script runs. The script also finds it as
    ``run.input_datasets['mnist']`` and in the variable ``mnist``.
    """

    def __init__(self, name: str, dataset: Any, mode: str = DIRECT, path_on_compute: Optional[str] = None) -> None:
        from runyard.sdk.data.base import AbstractDataset

        self.name = name
        if not isinstance(dataset, AbstractDataset):
            raise validation.wrong("dataset", dataset, "a dataset", error=UserErrorException)
        if not isinstance(mode, str) or mode.lower() not in _MODES:
            raise validation.wrong("mode", mode, f"one of {', '.join(map(repr, _MODES))}", error=UserErrorException)
        self.dataset: AbstractDataset = dataset
        self.mode = mode.lower()
        self.path_on_compute = validation.path("path_on_compute", path_on_compute, error=UserErrorException)

    @property
    def name(self) -> str:
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise UserErrorException(
                f"{name!r} cannot be the name of an input",
                hint="letters, digits and '_', no digit first: scripts find the path in a variable of that name",
            )
        self._name = name

    def as_mount(self, path_on_compute: Optional[str] = None) -> DatasetConsumptionConfig:
        """The files as they are on the node, not to be written to: a folder itself, or a copy that runs share."""
        return self._as(MOUNT, path_on_compute)

    def as_download(self, path_on_compute: Optional[str] = None) -> DatasetConsumptionConfig:
        """A copy of the run's own."""
        return self._as(DOWNLOAD, path_on_compute)

    def as_hdfs(self) -> DatasetConsumptionConfig:
        no_effect.told(self, "as_hdfs", True, "there is no Spark cluster: the data is mounted")
        return self._as(MOUNT, None)

    def _as(self, mode: str, path_on_compute: Optional[str]) -> DatasetConsumptionConfig:
        if self.dataset._definition.kind != FILE:
            raise UserErrorException(
                f"the tabular dataset of the input {self.name!r} cannot be mounted or downloaded",
                hint="pass as_named_input(…) as it is; the script reads "
                f"run.input_datasets[{self.name!r}].to_pandas_dataframe()",
            )
        return DatasetConsumptionConfig(self.name, self.dataset, mode, path_on_compute)

    def __str__(self) -> str:
        return self._as_argument()

    def __repr__(self) -> str:
        return f"DatasetConsumptionConfig(name={self.name!r}, dataset={self.dataset!r}, mode={self.mode!r})"

    def _as_argument(self) -> str:
        return f"{DATASET_ARGUMENT}{self._name}"

    def _data_use(self, workspace: Workspace) -> DataUse:
        """Said to the yard, which gives it an id when it is not registered."""
        from runyard.spec.data import DatasetUse, DataUse

        known = self.dataset._saved(workspace)
        first = self.dataset._definition.sources[0]
        return DataUse(
            name=self.name,
            datastore=first.datastore,
            path=first.path or first.url,
            mode=MOUNT if self.mode == DIRECT else self.mode,
            path_on_compute=self.path_on_compute,
            dataset=DatasetUse(known["dataset_id"], known["name"], known["version"], direct=self.mode == DIRECT),
        )
