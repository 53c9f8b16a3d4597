"""Datasets of files."""

from __future__ import annotations

import shutil
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Optional

from runyard.errors import UserErrorException
from runyard.sdk.azureml import no_effect
from runyard.sdk.core import validation
from runyard.sdk.data.base import AbstractDataset
from runyard.spec.dataset import select_files
from runyard.spec.json import to_json

if TYPE_CHECKING:
    from runyard.sdk.data.consumption import DatasetConsumptionConfig


class FileDataset(AbstractDataset):
    """Files in datastores or on the web, for scripts that open files."""

    def as_mount(self, path_on_compute: Optional[str] = None) -> DatasetConsumptionConfig:
        """Return a mounted input with a generated name; :meth:`as_named_input` lets you choose the name."""
        return self.as_named_input(_generate_name()).as_mount(path_on_compute)

    def as_download(self, path_on_compute: Optional[str] = None) -> DatasetConsumptionConfig:
        return self.as_named_input(_generate_name()).as_download(path_on_compute)

    def as_hdfs(self) -> DatasetConsumptionConfig:
        return self.as_named_input(_generate_name()).as_hdfs()

    def to_path(self) -> list[str]:
        """Return the path of each file relative to the mount point, with a leading slash."""
        if self._local_path is not None:
            return [f"/{name}" for name in self._file_names(self._local_path)]
        return [f"/{file['name']}" for file in self._list_files()]

    def download(
        self, target_path: Optional[str] = None, overwrite: bool = False, ignore_not_found: bool = False
    ) -> list[str]:
        """Copy all files to a local folder.

        Args:
            target_path: The folder; default: a new temporary folder.
            overwrite: Replace existing files instead of raising an error.
            ignore_not_found: Skip files that were deleted since the dataset was created.

        Returns:
            The paths of the copies.
        """
        target = _folder(target_path)
        root = self._resolve_files()
        copied = []
        for name in self._file_names(root):
            source = root if root.is_file() else root / name
            copy = target / name
            if copy.exists() and not overwrite:
                raise UserErrorException(
                    f"{copy} exists already", hint="pass overwrite=True to replace it, or choose another folder"
                )
            copy.parent.mkdir(parents=True, exist_ok=True)
            try:
                shutil.copyfile(source, copy)
            except FileNotFoundError:
                if not ignore_not_found:
                    raise UserErrorException(f"file {name} of the dataset no longer exists") from None
                continue
            copied.append(str(copy))
        return copied

    def mount(self, mount_point: Optional[str] = None, **kwargs: Any) -> MountContext:
        """Return a context manager: inside ``with dataset.mount() as mount:``, the files are at ``mount.mount_point``.

        Args:
            mount_point: A path that does not exist yet; chosen by the yard by default.
        """
        return MountContext(self, mount_point)

    @property
    def data_changed_time(self) -> Optional[datetime]:
        """Time of the last change of any of the files."""
        times = [file["modified_at"] for file in self._list_files() if file["modified_at"]]
        return datetime.fromtimestamp(max(times), timezone.utc) if times else None

    def as_cache(self, datacache_store: Any) -> FileDataset:
        no_effect.warn_ignored(
            "FileDataset.as_cache", "datacache_store", datacache_store, "the yard caches remote files"
        )
        return self

    def hydrate(self, datacache_store: Any, replica_count: Optional[int] = None) -> FileDataset:
        """Download the files to the yard's cache now instead of at the start of a run."""
        no_effect.warn_ignored("FileDataset.hydrate", "datacache_store", datacache_store, "the yard has a single cache")
        self._resolve_files()
        return self

    @property
    def partition_keys(self) -> list[str]:
        from runyard.sdk.data.partitions import partition_keys_of

        return partition_keys_of(self._definition.partition_format)

    def get_partition_key_values(self, partition_keys: Optional[list[str]] = None) -> list[dict[str, str]]:
        """Return the combinations of values in the paths, for all keys of the partition format or for some."""
        from runyard.sdk.data.partitions import partition_values_of

        keys = partition_keys or self.partition_keys
        return partition_values_of(self._definition.partition_format, self.to_path(), keys)

    def file_metadata(self, col: str) -> Any:
        raise _unavailable("file_metadata")

    def filter(self, expression: Any) -> FileDataset:
        raise _unavailable("filter")

    def _list_files(self) -> list[dict[str, Any]]:
        request = {"definition": to_json(self._definition)}
        files: list[dict[str, Any]] = self._connection.post("/api/datasets/files", request)["files"]
        return files

    def _file_names(self, root: Path) -> list[str]:
        if root.is_file():
            return [root.name]
        names = sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
        return select_files(names, self._remaining_steps())


class MountContext:
    """The read-only files of a dataset at a path, between ``start()`` and ``stop()``."""

    def __init__(self, dataset: FileDataset, mount_point: Optional[str]) -> None:
        self._dataset = dataset
        self._link = None if mount_point is None else Path(mount_point).expanduser().absolute()
        self._files: Optional[Path] = None  # set while mounted

    @property
    def mount_point(self) -> str:
        return str(self._link or self._files or self._dataset._resolve_files())

    def start(self) -> None:
        files, link = self._dataset._resolve_files(), self._link
        if link is not None:
            if link.is_dir() and not link.is_symlink() and not any(link.iterdir()):
                link.rmdir()
            if link.exists() or link.is_symlink():
                raise UserErrorException(f"{link} exists already", hint="mount at a path that does not exist")
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(files)
        self._files = files

    def stop(self) -> None:
        if self._files is not None and self._link is not None and self._link.is_symlink():
            self._link.unlink()
        self._files = None

    def __enter__(self) -> MountContext:
        self.start()
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.stop()


def _generate_name() -> str:
    import uuid

    return f"input_{uuid.uuid4().hex[:8]}"


def _folder(target_path: Any) -> Path:
    if target_path is None:
        import tempfile

        return Path(tempfile.mkdtemp(prefix="dataset-"))
    return Path(validation.path("target_path", target_path, error=UserErrorException) or ".").expanduser().absolute()


def _unavailable(name: str) -> UserErrorException:
    return UserErrorException(
        f"FileDataset.{name} is not available in this version",
        hint="select files by path, as in (datastore, '2019/*.png'), or with take, skip, take_sample and random_split",
    )
