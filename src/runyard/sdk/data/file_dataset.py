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
from runyard.spec.dataset import chosen
from runyard.spec.json import to_json

if TYPE_CHECKING:
    from runyard.sdk.data.consumption import DatasetConsumptionConfig


class FileDataset(AbstractDataset):
    """Files of datastores or of the web, as they are: for scripts that open files."""

    def as_mount(self, path_on_compute: Optional[str] = None) -> DatasetConsumptionConfig:
        """An input with a name of its own making; :meth:`as_named_input` gives it one."""
        return self.as_named_input(self._made_up_name()).as_mount(path_on_compute)

    def as_download(self, path_on_compute: Optional[str] = None) -> DatasetConsumptionConfig:
        return self.as_named_input(self._made_up_name()).as_download(path_on_compute)

    def as_hdfs(self) -> DatasetConsumptionConfig:
        return self.as_named_input(self._made_up_name()).as_hdfs()

    def to_path(self) -> list[str]:
        """The files, each with a slash first, relative to where the dataset is mounted."""
        if self._place is not None:
            return [f"/{name}" for name in self._names_here(self._place)]
        found = self._connection.post("/api/datasets/files", {"definition": to_json(self._definition)})
        return [f"/{file['name']}" for file in found["files"]]

    def download(
        self, target_path: Optional[str] = None, overwrite: bool = False, ignore_not_found: bool = False
    ) -> list[str]:
        """Copies of all files below ``target_path`` (default: a new temporary folder). Returns where they are."""
        target = _folder(target_path)
        place = self._here()
        copied = []
        for name in self._names_here(place):
            source = place if place.is_file() else place / name
            copy = target / name
            if copy.exists() and not overwrite:
                raise UserErrorException(
                    f"{copy} is there already", hint="download(…, overwrite=True) replaces it, or name another folder"
                )
            copy.parent.mkdir(parents=True, exist_ok=True)
            try:
                shutil.copyfile(source, copy)
            except FileNotFoundError:
                if not ignore_not_found:
                    raise UserErrorException(
                        f"{name} of the dataset is gone", hint="it was removed meanwhile"
                    ) from None
                continue
            copied.append(str(copy))
        return copied

    def mount(self, mount_point: Optional[str] = None, **kwargs: Any) -> MountContext:
        """``with dataset.mount() as place:`` or ``start()`` and ``stop()``; ``place.mount_point`` is the path."""
        return MountContext(self, mount_point)

    @property
    def data_changed_time(self) -> Optional[datetime]:
        """When the newest of the files was written."""
        found = self._connection.post("/api/datasets/files", {"definition": to_json(self._definition)})
        times = [file["modified_at"] for file in found["files"] if file["modified_at"]]
        return datetime.fromtimestamp(max(times), timezone.utc) if times else None

    def as_cache(self, datacache_store: Any) -> FileDataset:
        no_effect.told(
            "FileDataset.as_cache", "datacache_store", datacache_store, "the yard caches what comes from afar"
        )
        return self

    def hydrate(self, datacache_store: Any, replica_count: Optional[int] = None) -> FileDataset:
        """Brings the files now that a run would bring when it starts."""
        no_effect.told("FileDataset.hydrate", "datacache_store", datacache_store, "the yard has one cache of its own")
        self._here()
        return self

    @property
    def partition_keys(self) -> list[str]:
        from runyard.sdk.data.partitions import keys_of

        return keys_of(self._definition.partition_format)

    def get_partition_key_values(self, partition_keys: Optional[list[str]] = None) -> list[dict[str, str]]:
        """Which values the parts of the paths have that the partition format names."""
        from runyard.sdk.data.partitions import values_of

        wanted = partition_keys or self.partition_keys
        return values_of(self._definition.partition_format, self.to_path(), wanted)

    def file_metadata(self, col: str) -> Any:
        raise _unavailable("file_metadata")

    def filter(self, expression: Any) -> FileDataset:
        raise _unavailable("filter")

    def _names_here(self, place: Path) -> list[str]:
        if place.is_file():
            return [place.name]
        names = sorted(path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file())
        return chosen(names, self._steps_left())

    def _made_up_name(self) -> str:
        import uuid

        return f"input_{uuid.uuid4().hex[:8]}"


class MountContext:
    """The files at a path, as long as it is started. What is there is not to be written to."""

    def __init__(self, dataset: FileDataset, mount_point: Optional[str]) -> None:
        self._dataset = dataset
        self._wanted = None if mount_point is None else Path(mount_point).expanduser().absolute()
        self._there: Optional[Path] = None

    @property
    def mount_point(self) -> str:
        return str(self._wanted or self._there or self._dataset._here())

    def start(self) -> None:
        self._there = self._dataset._here()
        if self._wanted is None:
            return
        if self._wanted.is_dir() and not self._wanted.is_symlink() and not any(self._wanted.iterdir()):
            self._wanted.rmdir()
        if self._wanted.exists() or self._wanted.is_symlink():
            self._there = None
            raise UserErrorException(f"{self._wanted} is there already", hint="mount at a path that is free")
        self._wanted.parent.mkdir(parents=True, exist_ok=True)
        self._wanted.symlink_to(self._there)

    def stop(self) -> None:
        if self._there is not None and self._wanted is not None and self._wanted.is_symlink():
            self._wanted.unlink()
        self._there = None

    def __enter__(self) -> MountContext:
        self.start()
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.stop()


def _folder(target_path: Any) -> Path:
    if target_path is None:
        import tempfile

        return Path(tempfile.mkdtemp(prefix="dataset-"))
    return Path(validation.path("target_path", target_path, error=UserErrorException) or ".").expanduser().absolute()


def _unavailable(name: str) -> UserErrorException:
    return UserErrorException(
        f"FileDataset.{name} is not available in this version",
        hint="choose by the path, as in (datastore, '2019/*.png'), or by take, skip, take_sample and random_split",
    )
