"""What `Dataset` was before 2019, when it was one class with definitions, profiles and snapshots of its own.

What makes a dataset goes to the factories that took its place; the rest says what to do instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

from runyard.errors import UserErrorException
from runyard.sdk.data import factory
from runyard.sdk.data.base import AbstractDataset
from runyard.sdk.data.file_dataset import FileDataset
from runyard.sdk.data.tabular_dataset import TabularDataset

_NOW = "datasets of Dataset.File and Dataset.Tabular have what is needed of it"
_VERSIONS = "register(…, create_new_version=True) keeps versions; get_by_name(ws, name, version) gives one"
_UNREGISTER = "dataset.unregister_all_versions() frees the name"
_PANDAS = "dataset.to_pandas_dataframe() gives the table to pandas, which describes and compares"
_tables = factory.TabularDatasetFactory


class DatasetOfV1:
    def __init__(self, definition: Any, workspace: Any = None, name: Optional[str] = None, id: Any = None) -> None:
        raise UserErrorException(
            "a Dataset is not made by its class",
            hint="Dataset.File.from_files((datastore, 'folder/')) or Dataset.Tabular.from_delimited_files(…) makes one",
        )

    # other ways to make and find one

    @staticmethod
    def auto_read_files(
        path: Any, include_path: bool = False, partition_format: Optional[str] = None
    ) -> TabularDataset:
        return _tables.from_delimited_files(path, include_path=include_path, partition_format=partition_format)

    @staticmethod
    def from_binary_files(path: Any) -> FileDataset:
        return factory.FileDatasetFactory.from_files(path)

    @staticmethod
    def from_delimited_files(
        path: Any,
        separator: str = ",",
        header: Any = 3,  # of PromoteHeadersBehavior: all files have the same
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
            raise _gone("from_delimited_files with skip_rows, comment or archive_options", "leave these lines out")
        return _tables.from_delimited_files(
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
        return _tables.from_parquet_files(path, include_path=include_path, partition_format=partition_format)

    @staticmethod
    def from_json_files(
        path: Any,
        encoding: Any = "utf8",
        flatten_nested_arrays: bool = False,
        include_path: bool = False,
        partition_format: Optional[str] = None,
    ) -> TabularDataset:
        return _tables.from_json_lines_files(path, include_path=include_path, partition_format=partition_format)

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
        raise _gone("from_excel_files", "write the sheets as CSV or Parquet: pandas.read_excel(…).to_parquet(…)")

    @staticmethod
    def from_pandas_dataframe(dataframe: Any, path: Any = None, in_memory: bool = False) -> TabularDataset:
        raise _gone("from_pandas_dataframe", "Dataset.Tabular.register_pandas_dataframe(frame, (datastore, 'x'), name)")

    @staticmethod
    def from_sql_query(data_source: Any, query: str) -> TabularDataset:
        return _tables.from_sql_query(query)

    @staticmethod
    def get(workspace: Any, name: Optional[str] = None, id: Optional[str] = None) -> AbstractDataset:
        if id is not None:
            return AbstractDataset.get_by_id(workspace, id)
        return AbstractDataset.get_by_name(workspace, str(name))

    @staticmethod
    def list(workspace: Any) -> Sequence[AbstractDataset]:
        return [*AbstractDataset.get_all(workspace).values()]

    # what such an object had; there are none here, and each of these says so to whoever calls it on the class

    @property
    def id(self) -> str:
        raise _gone("id", _NOW)

    @property
    def name(self) -> str:
        raise _gone("name", _NOW)

    @property
    def description(self) -> str:
        raise _gone("description", _NOW)

    @property
    def tags(self) -> dict[str, str]:
        raise _gone("tags", _NOW)

    @property
    def workspace(self) -> Any:
        raise _gone("workspace", _NOW)

    @property
    def state(self) -> str:
        raise _gone("state", _NOW)

    @property
    def is_visible(self) -> bool:
        raise _gone("is_visible", _NOW)

    @property
    def definition(self) -> Any:
        raise _gone("definition", _VERSIONS)

    @property
    def definition_version(self) -> str:
        raise _gone("definition_version", _VERSIONS)

    def register(
        self,
        workspace: Any,
        name: str,
        description: Optional[str] = None,
        tags: Optional[dict[str, Any]] = None,
        visible: bool = True,
        exist_ok: bool = False,
        update_if_exist: bool = False,
    ) -> Any:
        raise _gone("register", _NOW)

    def update(
        self,
        name: Optional[str] = None,
        description: Optional[str] = None,
        tags: Optional[dict[str, Any]] = None,
        visible: Optional[bool] = None,
    ) -> Any:
        raise _gone("update", _NOW)

    def update_definition(self, definition: Any, definition_update_message: str) -> Any:
        raise _gone("update_definition", _VERSIONS)

    def get_definition(self, version_id: Optional[str] = None) -> Any:
        raise _gone("get_definition", _VERSIONS)

    def get_definitions(self) -> Any:
        raise _gone("get_definitions", _VERSIONS)

    def archive(self) -> None:
        raise _gone("archive", _UNREGISTER)

    def deprecate(self, deprecate_by_dataset_id: str) -> None:
        raise _gone("deprecate", _UNREGISTER)

    def reactivate(self) -> None:
        raise _gone("reactivate", _NOW)

    def create_snapshot(
        self,
        snapshot_name: str,
        compute_target: Any = None,
        create_data_snapshot: bool = False,
        target_datastore: Any = None,
    ) -> Any:
        raise _gone("create_snapshot", _VERSIONS)

    def get_snapshot(self, snapshot_name: str) -> Any:
        raise _gone("get_snapshot", _VERSIONS)

    def get_all_snapshots(self) -> Any:
        raise _gone("get_all_snapshots", _VERSIONS)

    def delete_snapshot(self, snapshot_name: str) -> None:
        raise _gone("delete_snapshot", _VERSIONS)

    def generate_profile(self, compute_target: Any = None, workspace: Any = None, arguments: Any = None) -> Any:
        raise _gone("generate_profile", _PANDAS)

    def get_profile(
        self,
        arguments: Any = None,
        generate_if_not_exist: bool = True,
        workspace: Any = None,
        compute_target: Any = None,
    ) -> Any:
        raise _gone("get_profile", _PANDAS)

    def compare_profiles(
        self,
        rhs_dataset: Any,
        profile_arguments: Any = {},  # noqa: B006 - as in v1, and nobody changes it
        include_columns: Optional[Sequence[str]] = None,
        exclude_columns: Optional[Sequence[str]] = None,
        histogram_compare_method: Any = 0,
    ) -> Any:
        raise _gone("compare_profiles", _PANDAS)

    def diff(self, rhs_dataset: Any, compute_target: Any = None, columns: Optional[Sequence[str]] = None) -> Any:
        raise _gone("diff", "compare their digests, or the frames of to_pandas_dataframe()")

    def head(self, count: int) -> Any:
        raise _gone("head", "Dataset.Tabular…take(count).to_pandas_dataframe()")

    def sample(self, sample_strategy: str, arguments: Any) -> Any:
        raise _gone("sample", "Dataset.Tabular…take_sample(probability, seed)")

    def to_pandas_dataframe(self) -> Any:
        raise _gone("to_pandas_dataframe", "tables have it: Dataset.Tabular.from_delimited_files(…)")

    def to_spark_dataframe(self) -> Any:
        raise _gone("to_spark_dataframe", _PANDAS)


def _gone(name: str, hint: str) -> UserErrorException:
    return UserErrorException(f"Dataset.{name} is not available here", hint=hint)
