"""Members of the `Dataset` class of before 2019: definitions, snapshots and profiles in a cloud service.

Each of them raises an error that names its replacement.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

from runyard.errors import UserErrorException

_CURRENT = "use a dataset of Dataset.File or Dataset.Tabular instead"
_VERSIONS = "register(…, create_new_version=True) keeps versions; get_by_name(ws, name, version) returns one"
_UNREGISTER = "dataset.unregister_all_versions() frees the name"
_PANDAS = "use pandas on dataset.to_pandas_dataframe()"


def removed(name: str, hint: str) -> UserErrorException:
    return UserErrorException(f"Dataset.{name} is not available here", hint=hint)


def _no_instances(self: Any) -> Any:
    raise removed("__init__", _CURRENT)


class RemovedDatasetMembers:
    # never evaluated, because Dataset has no instances; code completion and checks of the surface look for the names
    id = name = description = tags = workspace = state = is_visible = property(_no_instances)
    definition = definition_version = property(_no_instances)

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
        raise removed("register", _CURRENT)

    def update(
        self,
        name: Optional[str] = None,
        description: Optional[str] = None,
        tags: Optional[dict[str, Any]] = None,
        visible: Optional[bool] = None,
    ) -> Any:
        raise removed("update", _CURRENT)

    def update_definition(self, definition: Any, definition_update_message: str) -> Any:
        raise removed("update_definition", _VERSIONS)

    def get_definition(self, version_id: Optional[str] = None) -> Any:
        raise removed("get_definition", _VERSIONS)

    def get_definitions(self) -> Any:
        raise removed("get_definitions", _VERSIONS)

    def archive(self) -> None:
        raise removed("archive", _UNREGISTER)

    def deprecate(self, deprecate_by_dataset_id: str) -> None:
        raise removed("deprecate", _UNREGISTER)

    def reactivate(self) -> None:
        raise removed("reactivate", _CURRENT)

    def create_snapshot(
        self,
        snapshot_name: str,
        compute_target: Any = None,
        create_data_snapshot: bool = False,
        target_datastore: Any = None,
    ) -> Any:
        raise removed("create_snapshot", _VERSIONS)

    def get_snapshot(self, snapshot_name: str) -> Any:
        raise removed("get_snapshot", _VERSIONS)

    def get_all_snapshots(self) -> Any:
        raise removed("get_all_snapshots", _VERSIONS)

    def delete_snapshot(self, snapshot_name: str) -> None:
        raise removed("delete_snapshot", _VERSIONS)

    def generate_profile(self, compute_target: Any = None, workspace: Any = None, arguments: Any = None) -> Any:
        raise removed("generate_profile", _PANDAS)

    def get_profile(
        self,
        arguments: Any = None,
        generate_if_not_exist: bool = True,
        workspace: Any = None,
        compute_target: Any = None,
    ) -> Any:
        raise removed("get_profile", _PANDAS)

    def compare_profiles(
        self,
        rhs_dataset: Any,
        profile_arguments: Any = {},  # noqa: B006 - the default of the SDK v1; never modified
        include_columns: Optional[Sequence[str]] = None,
        exclude_columns: Optional[Sequence[str]] = None,
        histogram_compare_method: Any = 0,
    ) -> Any:
        raise removed("compare_profiles", _PANDAS)

    def diff(self, rhs_dataset: Any, compute_target: Any = None, columns: Optional[Sequence[str]] = None) -> Any:
        raise removed("diff", "compare their digests, or the data frames of to_pandas_dataframe()")

    def head(self, count: int) -> Any:
        raise removed("head", "Dataset.Tabular…take(count).to_pandas_dataframe()")

    def sample(self, sample_strategy: str, arguments: Any) -> Any:
        raise removed("sample", "Dataset.Tabular…take_sample(probability, seed)")

    def to_pandas_dataframe(self) -> Any:
        raise removed("to_pandas_dataframe", "Dataset.Tabular.from_delimited_files(…) returns a dataset that has it")

    def to_spark_dataframe(self) -> Any:
        raise removed("to_spark_dataframe", _PANDAS)
