"""The `Dataset` class: creation and lookup of datasets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

from runyard.errors import UserErrorException
from runyard.sdk.azureml.dataset_stubs import RemovedDatasetMembers, removed
from runyard.sdk.data.base import AbstractDataset
from runyard.sdk.data.factory import FileDatasetFactory, TabularDatasetFactory
from runyard.sdk.data.file_dataset import FileDataset
from runyard.sdk.data.tabular_dataset import TabularDataset


class Dataset(RemovedDatasetMembers):
    """``Dataset.File`` and ``Dataset.Tabular`` create datasets; ``get_by_name``, ``get_by_id``, ``get_all`` find them.

    The ``from_*`` methods are older names for methods of the two factories.
    """

    File = FileDatasetFactory
    Tabular = TabularDatasetFactory

    # plain functions, called on the class: the SDK v1 has them in this form, and `inspect` shows the same signature
    get_by_name = AbstractDataset.get_by_name
    get_by_id = AbstractDataset.get_by_id
    get_all = AbstractDataset.get_all

    class Scenario:
        TRAINING = "training"
        VALIDATION = "validation"
        INFERENCING = "inferencing"

    def __init__(self, definition: Any, workspace: Any = None, name: Optional[str] = None, id: Any = None) -> None:
        raise UserErrorException(
            "a Dataset is not created by its class",
            hint="use Dataset.File.from_files((datastore, 'folder/')) or Dataset.Tabular.from_delimited_files(…)",
        )

    @staticmethod
    def auto_read_files(
        path: Any, include_path: bool = False, partition_format: Optional[str] = None
    ) -> TabularDataset:
        return Dataset.Tabular.from_delimited_files(path, include_path=include_path, partition_format=partition_format)

    @staticmethod
    def from_binary_files(path: Any) -> FileDataset:
        return Dataset.File.from_files(path)

    @staticmethod
    def from_delimited_files(
        path: Any,
        separator: str = ",",
        header: Any = 3,  # PromoteHeadersBehavior: all files have the same headers
        encoding: Any = "utf8",
        quoting: bool = False,
        infer_column_types: bool = True,
        skip_rows: int = 0,
        skip_mode: Any = 0,
        comment: Optional[str] = None,
        include_path: bool = False,
        archive_options: Any = None,
        partition_format: Optional[str] = None,
    ) -> TabularDataset:
        if skip_rows or comment or archive_options:
            parameters = "skip_rows, comment or archive_options"
            raise removed(f"from_delimited_files with {parameters}", "remove these lines from the files")
        return Dataset.Tabular.from_delimited_files(
            path,
            include_path=include_path,
            infer_column_types=infer_column_types,
            separator=separator,
            header=header,
            partition_format=partition_format,
            support_multi_line=quoting,
            encoding=encoding if isinstance(encoding, str) else "utf8",
        )

    @staticmethod
    def from_parquet_files(
        path: Any, include_path: bool = False, partition_format: Optional[str] = None
    ) -> TabularDataset:
        return Dataset.Tabular.from_parquet_files(path, include_path=include_path, partition_format=partition_format)

    @staticmethod
    def from_json_files(
        path: Any,
        encoding: Any = "utf8",
        flatten_nested_arrays: bool = False,
        include_path: bool = False,
        partition_format: Optional[str] = None,
    ) -> TabularDataset:
        return Dataset.Tabular.from_json_lines_files(path, include_path=include_path, partition_format=partition_format)

    @staticmethod
    def from_excel_files(
        path: Any,
        sheet_name: Optional[str] = None,
        use_column_headers: bool = False,
        skip_rows: int = 0,
        include_path: bool = False,
        infer_column_types: bool = True,
        partition_format: Optional[str] = None,
    ) -> TabularDataset:
        raise removed("from_excel_files", "convert the sheets to CSV or Parquet: pandas.read_excel(…).to_parquet(…)")

    @staticmethod
    def from_pandas_dataframe(dataframe: Any, path: Any = None, in_memory: bool = False) -> TabularDataset:
        hint = "Dataset.Tabular.register_pandas_dataframe(frame, (datastore, 'x'), name)"
        raise removed("from_pandas_dataframe", hint)

    @staticmethod
    def from_sql_query(data_source: Any, query: str) -> TabularDataset:
        return Dataset.Tabular.from_sql_query(query)

    @staticmethod
    def get(workspace: Any, name: Optional[str] = None, id: Optional[str] = None) -> AbstractDataset:
        if id is not None:
            return AbstractDataset.get_by_id(workspace, id)
        return AbstractDataset.get_by_name(workspace, str(name))

    @staticmethod
    def list(workspace: Any) -> Sequence[AbstractDataset]:
        return [*AbstractDataset.get_all(workspace).values()]
