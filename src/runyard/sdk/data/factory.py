"""Creation of file datasets and of tabular datasets."""

from __future__ import annotations

import fnmatch
from pathlib import Path
from typing import Any, Optional

from runyard.errors import UserErrorException
from runyard.sdk.azureml import no_effect
from runyard.sdk.core import validation
from runyard.sdk.data.base import AbstractDataset
from runyard.sdk.data.file_dataset import FileDataset
from runyard.sdk.data.paths import parse_sources, parse_target
from runyard.sdk.data.tabular_dataset import TabularDataset
from runyard.spec.dataset import FILE, TABULAR, DatasetDefinition, Reading, Source
from runyard.spec.json import to_json

_HEADERS = ("none", "first", "all", "all")  # in the order of the SDK v1's PromoteHeadersBehavior


class FileDatasetFactory:
    """Creates datasets of files; available as ``Dataset.File``."""

    @staticmethod
    def from_files(
        path: Any, validate: bool = True, partition_format: Optional[str] = None, is_file: bool = False
    ) -> FileDataset:
        """Create a dataset of files in datastores or on the web.

        Args:
            path: ``(datastore, 'folder/')``, ``(datastore, 'folder/**/*.png')``, a URL, or a list of them.
            validate: Check that the path matches at least one file.
            partition_format: Format of the paths, such as ``'{state}/{day:yyyy/MM/dd}/data.csv'``.
            is_file: Has no effect.

        Raises:
            UserErrorException: The path is invalid or matches no file.
        """
        dataset = FileDataset._create(*_definition(FILE, path, None, partition_format))
        if validate:
            _check_exists(dataset)
        return dataset

    @staticmethod
    def upload_directory(
        src_dir: Any,
        target: Any,
        pattern: Optional[str] = None,
        overwrite: bool = False,
        show_progress: bool = True,
    ) -> FileDataset:
        """Upload a local folder to a datastore, and create a dataset of the target folder.

        Args:
            src_dir: The local folder.
            target: ``(datastore, 'folder')`` or a datastore.
            pattern: Upload only files whose name or relative path matches this glob pattern.
            overwrite: Replace files that exist already; by default they are skipped.
            show_progress: Print the progress.
        """
        folder = Path(validation.path("src_dir", src_dir, error=UserErrorException) or ".").expanduser().absolute()
        if not folder.is_dir():
            raise UserErrorException(f"src_dir {str(src_dir)!r} is not a folder ({folder})")
        store, path = parse_target(target)
        if pattern is None:
            store.upload(str(folder), path or None, overwrite, show_progress)
        else:
            files = [str(file) for file in sorted(folder.rglob("*")) if _matches(file, folder, pattern)]
            if not files:
                raise UserErrorException(f"no file below {folder} matches the pattern {pattern!r}")
            store.upload_files(files, str(folder), path or None, overwrite, show_progress)
        source = Source(store.name, f"{path.rstrip('/')}/" if path else "")
        return FileDataset._create(DatasetDefinition(FILE, (source,)), store.workspace)


class TabularDatasetFactory:
    """Creates datasets of tables; available as ``Dataset.Tabular``."""

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
        """Create a dataset of CSV files.

        Args:
            path: As in ``Dataset.File.from_files``.
            validate: Check that the path matches at least one file.
            include_path: Add a column ``Path`` with the file of each row.
            infer_column_types: Let pandas choose the types; otherwise all columns are text.
            set_column_types: Types by column, for example ``{'age': DataType.to_long()}``.
            separator: Separator of the columns.
            header: True if every file starts with column names; False if none does.
            partition_format: Format of the paths; each key becomes a column.
            support_multi_line: Allow line breaks inside quotes.
            empty_as_string: Has no effect.
            encoding: Encoding of the files.
        """
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
        no_effect.warn_ignored(
            "Dataset.Tabular.from_delimited_files",
            "empty_as_string",
            empty_as_string or None,
            "pandas decides which values are empty",
        )
        return _tabular(path, reading, validate, partition_format)

    @staticmethod
    def from_parquet_files(
        path: Any,
        validate: bool = True,
        include_path: bool = False,
        set_column_types: Optional[dict[str, Any]] = None,
        partition_format: Optional[str] = None,
    ) -> TabularDataset:
        """Create a dataset of Parquet files; for the parameters see :meth:`from_delimited_files`."""
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
        """Create a dataset of JSON lines files; for the parameters see :meth:`from_delimited_files`."""
        if invalid_lines != "error":
            raise _unsupported("from_json_lines_files(invalid_lines='drop')", "a line that is not JSON is an error")
        reading = Reading("json", encoding=encoding, types=_types(set_column_types), include_path=bool(include_path))
        return _tabular(path, reading, validate, partition_format)

    @staticmethod
    def from_sql_query(
        query: Any, validate: bool = True, set_column_types: Optional[dict[str, Any]] = None, query_timeout: int = 30
    ) -> TabularDataset:
        raise _unsupported("from_sql_query", "datastores here are folders and blob stores, not databases")

    @staticmethod
    def register_pandas_dataframe(
        dataframe: Any,
        target: Any,
        name: str,
        description: Optional[str] = None,
        tags: Optional[dict[str, Any]] = None,
        show_progress: bool = True,
    ) -> TabularDataset:
        """Upload a data frame as a Parquet file, and register a dataset of it as the next version of the name.

        Args:
            dataframe: A pandas DataFrame.
            target: ``(datastore, 'folder')`` or a datastore.
            name: Name of the dataset.
            description: Free text.
            tags: Labels.
            show_progress: Print the progress of the upload.
        """
        import tempfile
        import uuid

        store, path = parse_target(target)
        remote_folder = f"{path.rstrip('/')}/{uuid.uuid4()}".lstrip("/")
        with tempfile.TemporaryDirectory(prefix="runyard-") as folder:
            file = Path(folder) / "data.parquet"
            try:
                dataframe.to_parquet(file)
            except ImportError as error:
                raise UserErrorException(
                    f"writing Parquet needs a package that is not installed here: {error}", hint="pip install pyarrow"
                ) from None
            store.upload_files([str(file)], folder, remote_folder, True, show_progress)
        dataset = TabularDatasetFactory.from_parquet_files((store, f"{remote_folder}/data.parquet"))
        return dataset.register(store.workspace, name, description, tags, create_new_version=True)


class DataType:
    """The type of a column, for ``set_column_types``."""

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


def dataset_class(definition: DatasetDefinition) -> type[AbstractDataset]:
    return FileDataset if definition.kind == FILE else TabularDataset


def _definition(
    kind: str, path: Any, reading: Optional[Reading], partition_format: Optional[str]
) -> tuple[DatasetDefinition, Any]:
    sources, workspace = parse_sources(path)
    text = validation.text("partition_format", partition_format, error=UserErrorException)
    return DatasetDefinition(kind, sources, reading=reading, partition_format=text), workspace


def _tabular(path: Any, reading: Reading, validate: bool, partition_format: Optional[str]) -> TabularDataset:
    dataset = TabularDataset._create(*_definition(TABULAR, path, reading, partition_format))
    if validate:
        _check_exists(dataset)
    return dataset


def _check_exists(dataset: AbstractDataset) -> None:
    dataset._connection.post("/api/datasets/look", {"definition": to_json(dataset._definition)})


def _header(header: Any) -> str:
    if isinstance(header, bool):
        return "all" if header else "none"
    value = getattr(header, "value", header)
    if not isinstance(value, int) or not 0 <= value < len(_HEADERS):
        raise validation.invalid("header", header, "True, False or a PromoteHeadersBehavior", error=UserErrorException)
    return _HEADERS[value]


def _types(types: Any) -> tuple[tuple[str, str], ...]:
    if types is None:
        return ()
    if not isinstance(types, dict) or not all(isinstance(kind, DataType) for kind in types.values()):
        raise validation.invalid(
            "set_column_types", types, "a dict such as {'age': DataType.to_long()}", error=UserErrorException
        )
    return tuple((str(column), kind._kind) for column, kind in types.items())


def _matches(file: Path, folder: Path, pattern: str) -> bool:
    name = file.relative_to(folder).as_posix()
    return file.is_file() and (fnmatch.fnmatch(name, pattern) or fnmatch.fnmatch(file.name, pattern))


def _unsupported(name: str, reason: str) -> UserErrorException:
    return UserErrorException(f"Dataset.Tabular.{name} is not available in this version: {reason}")


# the SDK v1 has the factories on every dataset, too
AbstractDataset.File, AbstractDataset.Tabular = FileDatasetFactory, TabularDatasetFactory
