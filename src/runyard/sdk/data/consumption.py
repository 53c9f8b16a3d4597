"""A dataset as the input of a run: its name and the mode of access."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Optional

from runyard.errors import UserErrorException
from runyard.sdk.azureml import no_effect
from runyard.sdk.core import validation
from runyard.spec.data import DATASET_ARGUMENT_PREFIX, DOWNLOAD, MOUNT
from runyard.spec.dataset import DIRECT, FILE

if TYPE_CHECKING:
    from runyard.sdk.core.workspace import Workspace
    from runyard.sdk.data.base import AbstractDataset
    from runyard.spec.data import DataUse

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MODES = (DIRECT, MOUNT, DOWNLOAD)


class DatasetConsumptionConfig:
    """``dataset.as_named_input('mnist').as_mount()``: a value for `script_params`, `arguments` and `inputs`.

    On the command line it is replaced by the path of the data on the node. The script also finds the path as
    ``run.input_datasets['mnist']`` and in the environment variable ``mnist``.

    Args:
        name: Name of the input.
        dataset: The dataset.
        mode: ``direct``, ``mount`` or ``download``.
        path_on_compute: Path on the node; chosen by the yard by default.
    """

    def __init__(self, name: str, dataset: Any, mode: str = DIRECT, path_on_compute: Optional[str] = None) -> None:
        from runyard.sdk.data.base import AbstractDataset

        self.name = name
        if not isinstance(dataset, AbstractDataset):
            raise validation.invalid("dataset", dataset, "a dataset", error=UserErrorException)
        if not isinstance(mode, str) or mode.lower() not in _MODES:
            raise validation.invalid("mode", mode, f"one of {', '.join(map(repr, _MODES))}", error=UserErrorException)
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
                hint="use letters, digits and '_', no digit first: it becomes the name of an environment variable",
            )
        self._name = name

    def as_mount(self, path_on_compute: Optional[str] = None) -> DatasetConsumptionConfig:
        """Provide the files read-only: in place, or as a copy on the node that runs share."""
        return self._with_mode(MOUNT, path_on_compute)

    def as_download(self, path_on_compute: Optional[str] = None) -> DatasetConsumptionConfig:
        """Provide a private, writable copy."""
        return self._with_mode(DOWNLOAD, path_on_compute)

    def as_hdfs(self) -> DatasetConsumptionConfig:
        no_effect.warn_ignored(self, "as_hdfs", True, "there is no Spark cluster; the data is mounted")
        return self._with_mode(MOUNT, None)

    def _with_mode(self, mode: str, path_on_compute: Optional[str]) -> DatasetConsumptionConfig:
        if self.dataset._definition.kind != FILE:
            raise UserErrorException(
                f"the tabular dataset of the input {self.name!r} cannot be mounted or downloaded",
                hint="pass as_named_input(…) unchanged; the script reads "
                f"run.input_datasets[{self.name!r}].to_pandas_dataframe()",
            )
        return DatasetConsumptionConfig(self.name, self.dataset, mode, path_on_compute)

    def __str__(self) -> str:
        return self._as_argument()

    def __repr__(self) -> str:
        return f"DatasetConsumptionConfig(name={self.name!r}, dataset={self.dataset!r}, mode={self.mode!r})"

    def _as_argument(self) -> str:
        return f"{DATASET_ARGUMENT_PREFIX}{self._name}"

    def _data_use(self, workspace: Workspace) -> DataUse:
        """Convert to the form of a run's spec, after saving the dataset if the yard does not have it."""
        from runyard.spec.data import DatasetUse, DataUse

        view = self.dataset._ensure_saved(workspace)
        first = self.dataset._definition.sources[0]
        return DataUse(
            name=self.name,
            datastore=first.datastore,
            path=first.path or first.url,
            mode=MOUNT if self.mode == DIRECT else self.mode,
            path_on_compute=self.path_on_compute,
            dataset=DatasetUse(view["dataset_id"], view["name"], view["version"], direct=self.mode == DIRECT),
        )
