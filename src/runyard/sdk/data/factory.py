"""Making datasets: of files, and of tables."""

from __future__ import annotations

import fnmatch
from pathlib import Path
from typing import Any, Optional

from runyard.errors import UserErrorException
from runyard.sdk.core import validation
from runyard.sdk.data.base import AbstractDataset
from runyard.sdk.data.file_dataset import FileDataset
from runyard.sdk.data.paths import sources_of, target_of
from runyard.sdk.data.tabular_dataset import TabularDataset, ignored, unsupported
from runyard.spec.dataset import FILE, TABULAR, DatasetDefinition, Reading, Source
from runyard.spec.json import to_json

_HEADERS = ("none", "first", "all", "all")  # in the order of v1's PromoteHeadersBehavior


class FileDatasetFactory:
    @staticmethod
    def from_files(
        path: Any, validate: bool = True, partition_format: Optional[str] = None, is_file: bool = False
    ) -> FileDataset:
        """Files of datastores, ``(datastore, 'folder/')`` or ``(datastore, 'folder/**/*.png')``, and of the web.

        ``validate`` looks whether something is there.
        """
        definition, workspace = _definition(FILE, path, None, partition_format)
        made = FileDataset._made(definition, workspace)
        if validate:
            made._connection.post("/api/datasets/look", {"definition": to_json(definition)})
        return made

    @staticmethod
    def upload_directory(
        src_dir: Any,
        target: Any,
        pattern: Optional[str] = None,
        overwrite: bool = False,
        show_progress: bool = True,
    ) -> FileDataset:
        """A folder of this machine, brought to a datastore; the dataset is what is there then."""
        folder = Path(validation.path("src_dir", src_dir, error=UserErrorException) or ".").expanduser().absolute()
        if not folder.is_dir():
            raise UserErrorException(f"src_dir {str(src_dir)!r} is not a folder ({folder})")
        store, path = target_of(target)
        if pattern is None:
            store.upload(str(folder), path or None, overwrite, show_progress)
        else:
            files = [str(file) for file in sorted(folder.rglob("*")) if _fits(file, folder, pattern)]
            if not files:
                raise UserErrorException(f"no file below {folder} fits the pattern {pattern!r}")
            store.upload_files(files, str(folder), path or None, overwrite, show_progress)
        source = Source(store.name, f"{path.rstrip('/')}/" if path else "")
        return FileDataset._made(DatasetDefinition(FILE, (source,)), store.workspace)


class TabularDatasetFactory:
    @staticmethod
    def from_delimited_files(
        path: Any,
        validate: bool = True,
        include_path: bool = False,
        infer_column_types: bool = True,
        set_column_types: Optional[dict[str, Any]] = None,
        separator: str = ",",
        header: Any = True,
        partition_format: Optional[str] = None,
        support_multi_line: bool = False,
        empty_as_string: bool = False,
        encoding: str = "utf8",
    ) -> TabularDataset:
        reading = Reading(
            "delimited",
            separator=validation.text("separator", separator, error=UserErrorException) or ",",
            header=_header(header),
            encoding=validation.text("encoding", encoding, error=UserErrorException) or "utf8",
            quoting=bool(support_multi_line),
            infer_types=bool(infer_column_types),
            types=_types(set_column_types),
            include_path=bool(include_path),
        )
        ignored("from_delimited_files", "empty_as_string", empty_as_string or None, "pandas says what is empty")
        return _tabular(path, reading, validate, partition_format)

    @staticmethod
    def from_parquet_files(
        path: Any,
        validate: bool = True,
        include_path: bool = False,
        set_column_types: Optional[dict[str, Any]] = None,
        partition_format: Optional[str] = None,
    ) -> TabularDataset:
        reading = Reading("parquet", types=_types(set_column_types), include_path=bool(include_path))
        return _tabular(path, reading, validate, partition_format)

    @staticmethod
    def from_json_lines_files(
        path: Any,
        validate: bool = True,
        include_path: bool = False,
        set_column_types: Optional[dict[str, Any]] = None,
        partition_format: Optional[str] = None,
        invalid_lines: str = "error",
        encoding: str = "utf8",
    ) -> TabularDataset:
        if invalid_lines != "error":
            raise unsupported("from_json_lines_files(invalid_lines='drop')", "a line that is not JSON is an error")
        reading = Reading("json", encoding=encoding, types=_types(set_column_types), include_path=bool(include_path))
        return _tabular(path, reading, validate, partition_format)

    @staticmethod
    def from_sql_query(
        query: Any, validate: bool = True, set_column_types: Optional[dict[str, Any]] = None, query_timeout: int = 30
    ) -> TabularDataset:
        raise unsupported("from_sql_query", "datastores here are folders and blob stores, not databases")

    @staticmethod
    def register_pandas_dataframe(
        dataframe: Any,
        target: Any,
        name: str,
        description: Optional[str] = None,
        tags: Optional[dict[str, Any]] = None,
        show_progress: bool = True,
    ) -> TabularDataset:
        """The frame as a Parquet file in a datastore, registered: the next version of the name."""
        import tempfile
        import uuid

        store, path = target_of(target)
        inside = f"{path.rstrip('/')}/{uuid.uuid4()}".lstrip("/")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "data.parquet"
            try:
                dataframe.to_parquet(file)
            except ImportError as error:
                raise UserErrorException(
                    f"writing Parquet needs a package that is not installed here: {error}", hint="pip install pyarrow"
                ) from None
            store.upload_files([str(file)], folder, inside, True, show_progress)
        made = TabularDatasetFactory.from_parquet_files((store, f"{inside}/data.parquet"))
        return made.register(store.workspace, name, description, tags, create_new_version=True)


class DataType:
    """Which type a column has, for ``set_column_types``."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    @staticmethod
    def to_bool() -> DataType:
        return DataType("bool")

    @staticmethod
    def to_datetime(formats: Any = None) -> DataType:
        return DataType("datetime")

    @staticmethod
    def to_float(decimal_mark: str = ".") -> DataType:
        return DataType("float")

    @staticmethod
    def to_long() -> DataType:
        return DataType("long")

    @staticmethod
    def to_string() -> DataType:
        return DataType("string")


def class_of(definition: DatasetDefinition) -> type[AbstractDataset]:
    return FileDataset if definition.kind == FILE else TabularDataset


def _definition(
    kind: str, path: Any, reading: Optional[Reading], partition_format: Optional[str]
) -> tuple[DatasetDefinition, Any]:
    sources, workspace = sources_of(path)
    text = validation.text("partition_format", partition_format, error=UserErrorException)
    return DatasetDefinition(kind, sources, reading=reading, partition_format=text), workspace


def _tabular(path: Any, reading: Reading, validate: bool, partition_format: Optional[str]) -> TabularDataset:
    definition, workspace = _definition(TABULAR, path, reading, partition_format)
    made = TabularDataset._made(definition, workspace)
    if validate:
        made._connection.post("/api/datasets/look", {"definition": to_json(definition)})
    return made


def _header(header: Any) -> str:
    if isinstance(header, bool):
        return "all" if header else "none"
    value = getattr(header, "value", header)
    if not isinstance(value, int) or not 0 <= value < len(_HEADERS):
        raise validation.wrong("header", header, "True, False or a PromoteHeadersBehavior", error=UserErrorException)
    return _HEADERS[value]


def _types(given: Any) -> tuple[tuple[str, str], ...]:
    if given is None:
        return ()
    if not isinstance(given, dict) or not all(isinstance(kind, DataType) for kind in given.values()):
        raise validation.wrong(
            "set_column_types", given, "a dict such as {'age': DataType.to_long()}", error=UserErrorException
        )
    return tuple((str(column), kind._kind) for column, kind in given.items())


def _fits(file: Path, folder: Path, pattern: str) -> bool:
    name = file.relative_to(folder).as_posix()
    return file.is_file() and (fnmatch.fnmatch(name, pattern) or fnmatch.fnmatch(file.name, pattern))


# beside the classes themselves, as in v1: a dataset, too, has the doors to others
AbstractDataset.File, AbstractDataset.Tabular = FileDatasetFactory, TabularDatasetFactory
