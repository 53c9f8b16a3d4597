"""Datastores, one class per kind of storage: references to their files, uploads, downloads, listing and deletion."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from runyard.errors import UserErrorException
from runyard.sdk.core import validation
from runyard.sdk.data.reference import DataReference, normalize_path
from runyard.spec.data import REFERENCE_VARIABLE_PREFIX, DataUse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runyard.sdk.core.workspace import Workspace


class AbstractDatastore:
    """A registered folder or blob store; see ``Datastore.get(ws, name)`` and ``ws.get_default_datastore()``."""

    def __init__(self, workspace: Workspace, view: dict[str, Any]) -> None:
        self._workspace, self._view = workspace, view
        self._name = str(view["name"])

    @property
    def name(self) -> str:
        return self._name

    @property
    def datastore_type(self) -> str:
        """The name that the SDK v1 has for this kind of storage, if it has one."""
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
        """Return a reference to a path in the datastore; ``'.'`` and None are its root."""
        relative_path = normalize_path(path)
        name = data_reference_name or (uuid.uuid4().hex if relative_path else self.name)
        return DataReference(self, name, relative_path or None)

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
        """Upload all files of a folder, in the same layout.

        Args:
            src_dir: The local folder.
            target_path: Folder in the datastore; default: its root.
            overwrite: Replace files that exist already; by default they are skipped.
            show_progress: Print the progress.

        Returns:
            A reference to the uploaded folder.
        """
        from runyard.sdk.data.transfer import upload

        folder = Path(validation.path("src_dir", src_dir, error=UserErrorException) or "").expanduser().absolute()
        if not folder.is_dir():
            raise UserErrorException(
                f"src_dir {os.fspath(src_dir)!r} is not a folder ({folder})",
                hint="upload_files([…]) uploads single files",
            )
        relative_path = normalize_path(target_path)
        upload(self, folder, relative_path, None, overwrite=overwrite, show_progress=show_progress)
        return self.path(relative_path)

    def upload_files(
        self,
        files: Any,
        relative_root: Optional[str] = None,
        target_path: Optional[str] = None,
        overwrite: bool = False,
        show_progress: bool = True,
    ) -> DataReference:
        """Upload single files.

        Args:
            files: Paths of local files.
            relative_root: Folder that the layout in the datastore is relative to; default: their common parent.
            target_path: Folder in the datastore; default: its root.
            overwrite: Replace files that exist already; by default they are skipped.
            show_progress: Print the progress.

        Returns:
            A reference to the target folder.
        """
        from runyard.sdk.data.transfer import upload

        if isinstance(files, (str, bytes)) or not hasattr(files, "__iter__"):
            raise validation.invalid("files", files, "a list of paths", error=UserErrorException)
        paths = [
            Path(validation.path("files", file, error=UserErrorException) or "").expanduser().absolute()
            for file in files
        ]
        if not paths:
            raise UserErrorException("files is empty")
        root = _root(paths, relative_root)
        for path in paths:
            if not path.is_file():
                raise UserErrorException(f"no file {str(path)!r} to upload")
        names = [path.relative_to(root).as_posix() for path in paths]
        relative_path = normalize_path(target_path)
        upload(self, root, relative_path, names, overwrite=overwrite, show_progress=show_progress)
        return self.path(relative_path)

    def download(
        self, target_path: Any, prefix: Optional[str] = None, overwrite: bool = False, show_progress: bool = True
    ) -> int:
        """Download files.

        Args:
            target_path: Local folder; files keep their full path below it.
            prefix: File or folder in the datastore; default: everything.
            overwrite: Replace local files that exist already; by default they are skipped.
            show_progress: Print the progress.

        Returns:
            The number of downloaded files.
        """
        from runyard.sdk.data.transfer import download

        folder = (
            Path(validation.path("target_path", target_path, error=UserErrorException) or "").expanduser().absolute()
        )
        return download(self, folder, normalize_path(prefix), overwrite=overwrite, show_progress=show_progress)

    def list(self, path: Optional[str] = None, recursive: bool = True) -> list[str]:
        """Return the paths of all files below a folder; with ``recursive=False``, only its entries (folders: `x/`)."""
        return [e["path"] + "/" * e["is_folder"] for e in self._entries(path, recursive)]

    def delete(self, path: str) -> int:
        """Delete a file or a folder.

        Returns:
            The number of deleted files.
        """
        relative_path = normalize_path(path)
        if not relative_path:
            raise UserErrorException(
                f"refusing to delete everything in datastore {self.name!r}", hint="pass the path of a file or a folder"
            )
        result = self._workspace.connection.delete(f"/api/datastores/{self.name}/files", below=relative_path)
        return int(result["files"])

    def set_as_default(self) -> None:
        """Make this the datastore that ``ws.get_default_datastore()`` returns."""
        self._workspace.connection.put(f"/api/datastores/{self.name}/default", b"")

    def unregister(self) -> None:
        """Remove the name and the credentials from the yard; the stored data is not touched."""
        self._workspace.connection.delete(f"/api/datastores/{self.name}")

    def _entries(self, path: Optional[str], recursive: bool) -> Iterator[dict[str, Any]]:
        page = self._workspace.connection.get(
            f"/api/datastores/{self.name}/files", below=normalize_path(path), recursive=recursive
        )
        if page["truncated"]:
            raise UserErrorException(
                f"{page['files']:,} files at {path or 'the root'!r} of {self.name!r} are too many to list",
                hint="list a folder further down, or pass recursive=False",
            )
        yield from page["entries"]

    def _as_argument(self) -> str:
        return f"${REFERENCE_VARIABLE_PREFIX}{self.name}"

    def _data_use(self, workspace: Workspace) -> DataUse:
        return self.path()._data_use(workspace)

    def __str__(self) -> str:
        return self._as_argument()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r})"


class AzureBlobDatastore(AbstractDatastore):
    """A container of Azure Blob Storage."""

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
    """A folder of this machine. It also has the attributes of blob stores that notebooks print."""

    @property
    def folder(self) -> Path:
        return Path(self._view["configuration"]["path"])


class S3Datastore(AbstractDatastore):
    """A bucket of S3 or of a compatible service."""

    @property
    def bucket(self) -> str:
        return str(self._view["configuration"]["bucket"])


class GcsDatastore(S3Datastore):
    """A bucket of Google Cloud Storage."""


class AzureDataLakeGen2Datastore(AbstractDatastore):
    """A file system of Azure Data Lake Storage Gen2."""

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


def datastore_from_view(workspace: Workspace, view: dict[str, Any]) -> AbstractDatastore:
    """Return the datastore that the yard described."""
    return _CLASSES.get(str(view["kind"]), AbstractDatastore)(workspace, view)


def _root(paths: list[Path], relative_root: Optional[str]) -> Path:
    if relative_root is None:
        return Path(os.path.commonpath([path.parent for path in paths]))
    root = Path(relative_root).expanduser().absolute()
    outside = next((path for path in paths if root not in path.parents), None)
    if outside is not None:
        raise UserErrorException(f"{str(outside)!r} is not below relative_root {str(root)!r}")
    return root
