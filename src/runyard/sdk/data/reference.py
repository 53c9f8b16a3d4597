"""References to data: a part of a datastore, and how it comes to a script or from it."""

from __future__ import annotations

import copy
import uuid
from typing import TYPE_CHECKING, Any, Optional

from runyard.errors import UserErrorException
from runyard.sdk.core import validation
from runyard.spec.data import DOWNLOAD, MODES, MOUNT, UPLOAD, VARIABLE, DataUse

if TYPE_CHECKING:
    from runyard.sdk.core.workspace import Workspace
    from runyard.sdk.data.datastore import AbstractDatastore
    from runyard.sdk.training.run_configuration import DataReferenceConfiguration


class DataPath:
    """A part of a datastore, and nothing about how it comes to a script."""

    def __init__(
        self, datastore: Any = None, path_on_datastore: Optional[str] = None, name: Optional[str] = None
    ) -> None:
        self.datastore, self.path_on_datastore, self.name = datastore, path_on_datastore, name

    @property
    def datastore_name(self) -> Optional[str]:
        return getattr(self.datastore, "name", None)

    def create_data_reference(
        self, data_reference_name: Optional[str] = None, datapath_compute_binding: Any = None
    ) -> DataReference:
        return DataReference.create(data_reference_name, self, datapath_compute_binding)


class DataPathComputeBinding:
    def __init__(self, mode: str = MOUNT, path_on_compute: Optional[str] = None, overwrite: bool = False) -> None:
        self.mode, self.path_on_compute, self.overwrite = checked_mode(mode), path_on_compute, overwrite


class DataReference:
    """``ds.path('mnist').as_mount()``: for `script_params`, `arguments` and `inputs`.

    As text it is ``$AZUREML_DATAREFERENCE_<name>``, the variable in which the script's process has the path.
    """

    def __init__(
        self,
        datastore: AbstractDatastore,
        data_reference_name: Optional[str] = None,
        path_on_datastore: Optional[str] = None,
        mode: str = MOUNT,
        path_on_compute: Optional[str] = None,
        overwrite: bool = False,
    ) -> None:
        self.datastore = datastore
        self.data_reference_name = _name(data_reference_name) or datastore.name
        self.path_on_datastore = validation.path("path_on_datastore", path_on_datastore, error=UserErrorException)
        self.mode = checked_mode(mode)
        self.path_on_compute = validation.path("path_on_compute", path_on_compute, error=UserErrorException)
        self.overwrite = bool(overwrite)

    @staticmethod
    def create(
        data_reference_name: Optional[str] = None, datapath: Any = None, datapath_compute_binding: Any = None
    ) -> DataReference:
        """From a DataPath and how it is bound to the compute."""
        if datapath is None:
            raise UserErrorException("DataReference.create needs a datapath", hint="ds.path('…') makes a reference")
        bound = datapath_compute_binding
        return DataReference(
            datapath.datastore,
            data_reference_name or uuid.uuid4().hex,
            datapath.path_on_datastore,
            getattr(bound, "mode", MOUNT),
            getattr(bound, "path_on_compute", None),
            getattr(bound, "overwrite", False),
        )

    def path(self, path: Optional[str] = None, data_reference_name: Optional[str] = None) -> DataReference:
        """A part of this one."""
        below = [part.strip("/") for part in (self.path_on_datastore or "", path or "") if part not in ("", ".")]
        name = data_reference_name or (uuid.uuid4().hex if path else self.data_reference_name)
        return DataReference(self.datastore, name, "/".join(below) or None)

    def as_mount(self) -> DataReference:
        """Read in place, or from a copy on the node that runs share; not to be written to."""
        return self._as(MOUNT, None, False)

    def as_download(self, path_on_compute: Optional[str] = None, overwrite: bool = False) -> DataReference:
        """A copy of the run's own."""
        return self._as(DOWNLOAD, path_on_compute, False)

    def as_upload(self, path_on_compute: Optional[str] = None, overwrite: bool = False) -> DataReference:
        """What the script writes there is sent to the datastore after its end, however it ended."""
        return self._as(UPLOAD, path_on_compute, overwrite)

    def to_config(self) -> DataReferenceConfiguration:
        from runyard.sdk.training.run_configuration import DataReferenceConfiguration

        return DataReferenceConfiguration(
            self.datastore.name, self.mode, self.path_on_datastore, self.path_on_compute, self.overwrite
        )

    def _as(self, mode: str, path_on_compute: Optional[str], overwrite: bool) -> DataReference:
        other = copy.copy(self)
        other.mode = mode
        other.path_on_compute = validation.path("path_on_compute", path_on_compute, error=UserErrorException)
        other.overwrite = bool(overwrite)
        return other

    def _as_argument(self) -> str:
        return f"${VARIABLE}{self.data_reference_name}"

    def _data_use(self, workspace: Workspace) -> DataUse:
        return use_of(self.data_reference_name, self.to_config())

    def __str__(self) -> str:
        return self._as_argument()

    def __repr__(self) -> str:
        return self._as_argument()


def use_of(name: str, config: Any) -> DataUse:
    """Of an entry of ``run_config.data_references``."""
    if isinstance(config, DataReference):
        config = config.to_config()
    try:
        store, path = config.data_store_name, config.path_on_data_store
    except AttributeError:
        raise validation.wrong(
            f"data_references[{name!r}]", config, "a DataReferenceConfiguration", error=UserErrorException
        ) from None
    if not store:
        raise UserErrorException(f"data_references[{name!r}] names no datastore", hint="datastore_name=ds.name")
    return DataUse(
        name=_name(name) or "",
        datastore=str(store),
        path=cleaned(path),
        mode=checked_mode(config.mode),
        path_on_compute=config.path_on_compute or None,
        overwrite=bool(config.overwrite),
    )


def cleaned(path: Any) -> str:
    """As a datastore knows it: ``./mnist/`` is ``mnist``."""
    text = validation.path("path", path, error=UserErrorException) or ""
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise UserErrorException(f"the path {text!r} leads out of the datastore", hint="name it from its root: 'mnist'")
    return "/".join(parts)


def checked_mode(mode: Any) -> str:
    if not isinstance(mode, str) or mode.lower() not in MODES:
        raise validation.wrong("mode", mode, "'mount', 'download' or 'upload'", error=UserErrorException)
    return mode.lower()


def _name(name: Any) -> Optional[str]:
    """It becomes a part of a variable's name, which a shell has to be able to say."""
    if name is None:
        return None
    if not isinstance(name, str) or not name.replace("_", "a").replace("-", "a").isalnum() or not name.isascii():
        raise UserErrorException(
            f"{name!r} cannot be the name of a data reference", hint="letters, digits and '_', such as 'train_data'"
        )
    return name
