"""Datastores: folders and blob stores by name, and what can be done with what is in them."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from runyard.errors import UserErrorException
from runyard.sdk.core import validation
from runyard.sdk.data.reference import DataReference, cleaned
from runyard.spec.data import VARIABLE, DataUse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runyard.sdk.core.workspace import Workspace


class AbstractDatastore:
    """One registered datastore. ``Datastore.get(ws, name)`` and ``ws.get_default_datastore()`` give them."""

    def __init__(self, workspace: Workspace, view: dict[str, Any]) -> None:
        self._workspace, self._view = workspace, view
        self._name = str(view["name"])

    @property
    def name(self) -> str:
        return self._name

    @property
    def datastore_type(self) -> str:
        """In the words of the SDK v1 where it had one."""
        kinds = {
            "azure_blob": "AzureBlob",
            "azure_data_lake_gen2": "AzureDataLakeGen2",
            "s3": "S3",
            "gcs": "GCS",
            "runs": "Runs",
        }
        return kinds.get(str(self._view["kind"]), "Folder")

    @property
    def workspace(self) -> Workspace:
        return self._workspace

    def path(self, path: Optional[str] = None, data_reference_name: Optional[str] = None) -> DataReference:
        """A reference to a part of it, or to all of it: `'.'` and None are the root."""
        below = cleaned(path)
        name = data_reference_name or (uuid.uuid4().hex if below else self.name)
        return DataReference(self, name, below or None)

    def as_mount(self) -> DataReference:
        return self.path().as_mount()

    def as_download(self, path_on_compute: Optional[str] = None) -> DataReference:
        return self.path().as_download(path_on_compute)

    def as_upload(self, path_on_compute: Optional[str] = None) -> DataReference:
        return self.path().as_upload(path_on_compute)

    def upload(
        self,
        src_dir: Any,
        target_path: Optional[str] = None,
        overwrite: bool = False,
        show_progress: bool = True,
    ) -> DataReference:
        """All files of a folder, in the same layout. What is there already stays, unless ``overwrite``."""
        from runyard.sdk.data.transfer import upload

        folder = Path(validation.path("src_dir", src_dir, error=UserErrorException) or "").expanduser().absolute()
        if not folder.is_dir():
            raise UserErrorException(
                f"src_dir {os.fspath(src_dir)!r} is not a folder ({folder})",
                hint="upload_files([…]) uploads files by their names",
            )
        below = cleaned(target_path)
        upload(self, folder, below, None, overwrite=overwrite, show_progress=show_progress)
        return self.path(below)

    def upload_files(
        self,
        files: Any,
        relative_root: Optional[str] = None,
        target_path: Optional[str] = None,
        overwrite: bool = False,
        show_progress: bool = True,
    ) -> DataReference:
        """Files by their names, laid out as they are below ``relative_root``: by default the folder that all are in."""
        from runyard.sdk.data.transfer import upload

        if isinstance(files, (str, bytes)) or not hasattr(files, "__iter__"):
            raise validation.wrong("files", files, "a list of paths", error=UserErrorException)
        paths = [
            Path(validation.path("files", file, error=UserErrorException) or "").expanduser().absolute()
            for file in files
        ]
        if not paths:
            raise UserErrorException("files is empty: there is nothing to upload")
        root = _root(paths, relative_root)
        for path in paths:
            if not path.is_file():
                raise UserErrorException(f"there is no file {str(path)!r} to upload")
        names = [path.relative_to(root).as_posix() for path in paths]
        below = cleaned(target_path)
        upload(self, root, below, names, overwrite=overwrite, show_progress=show_progress)
        return self.path(below)

    def download(
        self, target_path: Any, prefix: Optional[str] = None, overwrite: bool = False, show_progress: bool = True
    ) -> int:
        """What is below ``prefix``, with its whole path, below a folder here; how many files that are."""
        from runyard.sdk.data.transfer import download

        folder = (
            Path(validation.path("target_path", target_path, error=UserErrorException) or "").expanduser().absolute()
        )
        return download(self, folder, cleaned(prefix), overwrite=overwrite, show_progress=show_progress)

    def list(self, path: Optional[str] = None, recursive: bool = True) -> list[str]:
        """The paths of the files below a folder; with ``recursive=False`` its own files, and its folders as `name/`."""
        return [e["path"] + "/" * e["is_folder"] for e in self._entries(path, recursive)]

    def delete(self, path: str) -> int:
        """One file, or everything below a folder; how many files it were."""
        below = cleaned(path)
        if not below:
            raise UserErrorException(
                f"everything in datastore {self.name!r} is not deleted in one go", hint="name a file or a folder"
            )
        gone = self._workspace.connection.delete(f"/api/datastores/{self.name}/files", below=below)
        return int(gone["files"])

    def set_as_default(self) -> None:
        """``ws.get_default_datastore()`` gives it from now on."""
        self._workspace.connection.put(f"/api/datastores/{self.name}/default", b"")

    def unregister(self) -> None:
        """Forgets the name and the credentials; what is in it stays."""
        self._workspace.connection.delete(f"/api/datastores/{self.name}")

    def _entries(self, path: Optional[str], recursive: bool) -> Iterator[dict[str, Any]]:
        found = self._workspace.connection.get(
            f"/api/datastores/{self.name}/files", below=cleaned(path), recursive=recursive
        )
        if found["truncated"]:
            raise UserErrorException(
                f"there are {found['files']:,} files at {path or 'the root'!r} of {self.name!r}: too many to list",
                hint="list a folder further down, or recursive=False",
            )
        yield from found["entries"]

    def _as_argument(self) -> str:
        return f"${VARIABLE}{self.name}"

    def _data_use(self, workspace: Workspace) -> DataUse:
        return self.path()._data_use(workspace)

    def __str__(self) -> str:
        return self._as_argument()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r})"


class AzureBlobDatastore(AbstractDatastore):
    @property
    def container_name(self) -> str:
        return str(self._view["configuration"].get("container_name") or self.name)

    @property
    def account_name(self) -> str:
        return str(self._view["configuration"].get("account_name") or "local")

    @property
    def is_sas(self) -> bool:
        return False

    @property
    def protocol(self) -> str:
        return str(self._view["configuration"].get("protocol") or "https")

    @property
    def endpoint(self) -> str:
        return str(self._view["configuration"].get("endpoint") or "core.windows.net")


class FolderDatastore(AzureBlobDatastore):
    """A folder of this machine. It has the names that notebooks print of their blob stores, too."""

    @property
    def folder(self) -> Path:
        return Path(self._view["configuration"]["path"])


class S3Datastore(AbstractDatastore):
    @property
    def bucket(self) -> str:
        return str(self._view["configuration"]["bucket"])


class GcsDatastore(AbstractDatastore):
    @property
    def bucket(self) -> str:
        return str(self._view["configuration"]["bucket"])


class AzureDataLakeGen2Datastore(AbstractDatastore):
    @property
    def container_name(self) -> str:
        return str(self._view["configuration"]["filesystem"])

    @property
    def account_name(self) -> str:
        return str(self._view["configuration"]["account_name"])


_CLASSES: dict[str, type[AbstractDatastore]] = {
    "folder": FolderDatastore,
    "azure_blob": AzureBlobDatastore,
    "azure_data_lake_gen2": AzureDataLakeGen2Datastore,
    "s3": S3Datastore,
    "gcs": GcsDatastore,
}


def of_view(workspace: Workspace, view: dict[str, Any]) -> AbstractDatastore:
    return _CLASSES.get(str(view["kind"]), AbstractDatastore)(workspace, view)


def get(workspace: Workspace, name: str) -> AbstractDatastore:
    return of_view(workspace, workspace.connection.get(f"/api/datastores/{name}"))


def default_of(workspace: Workspace) -> AbstractDatastore:
    return get(workspace, "-")


def all_of(workspace: Workspace) -> list[AbstractDatastore]:
    return [of_view(workspace, view) for view in workspace.connection.get("/api/datastores")]


def _root(paths: list[Path], relative_root: Optional[str]) -> Path:
    if relative_root is None:
        return Path(os.path.commonpath([path.parent for path in paths]))
    root = Path(relative_root).expanduser().absolute()
    outside = next((path for path in paths if root not in path.parents), None)
    if outside is not None:
        raise UserErrorException(f"{str(outside)!r} is not below relative_root {str(root)!r}")
    return root
