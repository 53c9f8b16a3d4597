"""References to data in a datastore as inputs and outputs of runs."""

from __future__ import annotations

import copy
import uuid
from typing import TYPE_CHECKING, Any, Optional

from runyard.errors import UserErrorException
from runyard.sdk.core import validation
from runyard.spec.data import DOWNLOAD, MODES, MOUNT, REFERENCE_VARIABLE_PREFIX, UPLOAD, DataUse

if TYPE_CHECKING:
    from runyard.sdk.core.workspace import Workspace
    from runyard.sdk.data.datastore import AbstractDatastore
    from runyard.sdk.training.run_configuration import DataReferenceConfiguration


class DataPath:
    """A path in a datastore, without a mode of access."""

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
    """The mode in which a script accesses a DataPath."""

    def __init__(self, mode: str = MOUNT, path_on_compute: Optional[str] = None, overwrite: bool = False) -> None:
        self.mode, self.path_on_compute, self.overwrite = validate_mode(mode), path_on_compute, overwrite


class DataReference:
    """``ds.path('mnist').as_mount()``: a value for `script_params`, `arguments` and `inputs`.

    As text it is ``$AZUREML_DATAREFERENCE_<name>``, the environment variable that contains the path in the run.

    Args:
        datastore: The datastore.
        data_reference_name: Name of the variable's suffix; default: the datastore's name.
        path_on_datastore: File or folder; default: everything.
        mode: ``mount``, ``download`` or ``upload``.
        path_on_compute: Path on the node; chosen by the yard by default.
        overwrite: For uploads, replace files that exist already.
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
        self.mode = validate_mode(mode)
        self.path_on_compute = validation.path("path_on_compute", path_on_compute, error=UserErrorException)
        self.overwrite = bool(overwrite)

    @staticmethod
    def create(
        data_reference_name: Optional[str] = None, datapath: Any = None, datapath_compute_binding: Any = None
    ) -> DataReference:
        """Create a reference from a DataPath and a DataPathComputeBinding."""
        if datapath is None:
            raise UserErrorException("DataReference.create needs a datapath", hint="ds.path('…') returns a reference")
        binding = datapath_compute_binding
        return DataReference(
            datapath.datastore,
            data_reference_name or uuid.uuid4().hex,
            datapath.path_on_datastore,
            getattr(binding, "mode", MOUNT),
            getattr(binding, "path_on_compute", None),
            getattr(binding, "overwrite", False),
        )

    def path(self, path: Optional[str] = None, data_reference_name: Optional[str] = None) -> DataReference:
        """Return a reference to a path below this one."""
        parts = [part.strip("/") for part in (self.path_on_datastore or "", path or "") if part not in ("", ".")]
        name = data_reference_name or (uuid.uuid4().hex if path else self.data_reference_name)
        return DataReference(self.datastore, name, "/".join(parts) or None)

    def as_mount(self) -> DataReference:
        """Provide the data read-only: in place, or as a copy on the node that runs share."""
        return self._with_mode(MOUNT, None, False)

    def as_download(self, path_on_compute: Optional[str] = None, overwrite: bool = False) -> DataReference:
        """Provide a private, writable copy."""
        return self._with_mode(DOWNLOAD, path_on_compute, False)

    def as_upload(self, path_on_compute: Optional[str] = None, overwrite: bool = False) -> DataReference:
        """Upload the files that the script writes to the path, after it ended or failed."""
        return self._with_mode(UPLOAD, path_on_compute, overwrite)

    def to_config(self) -> DataReferenceConfiguration:
        from runyard.sdk.training.run_configuration import DataReferenceConfiguration

        return DataReferenceConfiguration(
            self.datastore.name, self.mode, self.path_on_datastore, self.path_on_compute, self.overwrite
        )

    def _with_mode(self, mode: str, path_on_compute: Optional[str], overwrite: bool) -> DataReference:
        reference = copy.copy(self)
        reference.mode = mode
        reference.path_on_compute = validation.path("path_on_compute", path_on_compute, error=UserErrorException)
        reference.overwrite = bool(overwrite)
        return reference

    def _as_argument(self) -> str:
        return f"${REFERENCE_VARIABLE_PREFIX}{self.data_reference_name}"

    def _data_use(self, workspace: Workspace) -> DataUse:
        return to_data_use(self.data_reference_name, self.to_config())

    def __str__(self) -> str:
        return self._as_argument()

    def __repr__(self) -> str:
        return self._as_argument()


def to_data_use(name: str, config: Any) -> DataUse:
    """Convert an entry of ``run_config.data_references``."""
    if isinstance(config, DataReference):
        config = config.to_config()
    try:
        store, path = config.data_store_name, config.path_on_data_store
    except AttributeError:
        raise validation.invalid(
            f"data_references[{name!r}]", config, "a DataReferenceConfiguration", error=UserErrorException
        ) from None
    if not store:
        raise UserErrorException(f"data_references[{name!r}] names no datastore", hint="datastore_name=ds.name")
    return DataUse(
        name=_name(name) or "",
        datastore=str(store),
        path=normalize_path(path),
        mode=validate_mode(config.mode),
        path_on_compute=config.path_on_compute or None,
        overwrite=bool(config.overwrite),
    )


def normalize_path(path: Any) -> str:
    """Return a path relative to the root of its datastore: ``./mnist/`` becomes ``mnist``."""
    text = validation.path("path", path, error=UserErrorException) or ""
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise UserErrorException(
            f"the path {text!r} leads out of the datastore", hint="write it relative to the root: 'mnist'"
        )
    return "/".join(parts)


def validate_mode(mode: Any) -> str:
    if not isinstance(mode, str) or mode.lower() not in MODES:
        raise validation.invalid("mode", mode, "'mount', 'download' or 'upload'", error=UserErrorException)
    return mode.lower()


def _name(name: Any) -> Optional[str]:
    """Check the name, which becomes part of an environment variable's name."""
    if name is None:
        return None
    if not isinstance(name, str) or not name.replace("_", "a").replace("-", "a").isalnum() or not name.isascii():
        raise UserErrorException(
            f"{name!r} cannot be the name of a data reference", hint="letters, digits and '_', such as 'train_data'"
        )
    return name
