"""Base of file and tabular datasets: a definition and, once registered, a name, a version and an id."""

from __future__ import annotations

import dataclasses
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Optional, TypeVar

from runyard.errors import UserErrorException
from runyard.sdk.core import validation
from runyard.sdk.core.labels import as_labels
from runyard.spec.dataset import PART, SAMPLE, SKIP, TAKE, DatasetDefinition, Step
from runyard.spec.json import from_json, to_json

if TYPE_CHECKING:
    from runyard.client.connection import Connection
    from runyard.sdk.core.workspace import Workspace
    from runyard.sdk.data.consumption import DatasetConsumptionConfig

D = TypeVar("D", bound="AbstractDataset")


class AbstractDataset:
    """An immutable description of data. Operations return another dataset; data is read only when it is needed."""

    File: ClassVar[Any]
    Tabular: ClassVar[Any]
    _ARGUMENT_HINT = "choose how it is provided: dataset.as_named_input('name').as_mount(), or .as_download()"

    def __init__(self) -> None:
        raise UserErrorException(
            f"a {type(self).__name__} is not created by its class",
            hint="use Dataset.File.from_files((datastore, 'folder/')) or Dataset.Tabular.from_delimited_files(…)",
        )

    @classmethod
    def _create(
        cls: type[D],
        definition: DatasetDefinition,
        workspace: Optional[Workspace],
        view: Optional[dict[str, Any]] = None,
    ) -> D:
        dataset = cls.__new__(cls)
        dataset._definition = definition
        dataset._workspace = workspace
        dataset._view = view
        dataset._local_path, dataset._applied_steps = None, 0
        return dataset

    _definition: DatasetDefinition
    _workspace: Optional[Workspace]
    _view: Optional[dict[str, Any]]
    _local_path: Optional[Path]  # inside a run: path of its files on the node
    _applied_steps: int  # number of steps that the files at _local_path already reflect

    @staticmethod
    def get_by_name(workspace: Any, name: str, version: Any = "latest", **kwargs: Any) -> AbstractDataset:
        """Return a registered dataset.

        Args:
            workspace: The workspace that contains it.
            name: Its name.
            version: A version number, or ``"latest"``.

        Raises:
            UserErrorException: No dataset has this name and version.
        """
        number = None if version in (None, "latest") else _version(version)
        if not isinstance(name, str) or not name:
            raise validation.invalid("name", name, "the name of a dataset", error=UserErrorException)
        view = workspace.connection.get("/api/datasets/one", name=name, version=number)
        return dataset_from_view(view, workspace)

    @staticmethod
    def get_by_id(workspace: Any, id: str, **kwargs: Any) -> AbstractDataset:
        """Return a dataset by its id, registered or not."""
        return dataset_from_view(workspace.connection.get("/api/datasets/one", id=str(id)), workspace)

    @staticmethod
    def get_all(workspace: Any) -> dict[str, AbstractDataset]:
        """Return the newest version of each registered dataset, by name."""
        from runyard.sdk.core.workspace import NameDict

        views = workspace.connection.get("/api/datasets")
        return NameDict((view["name"], dataset_from_view(view, workspace)) for view in views)

    def register(
        self: D,
        workspace: Any,
        name: str,
        description: Optional[str] = None,
        tags: Optional[dict[str, Any]] = None,
        create_new_version: bool = False,
    ) -> D:
        """Register the dataset under a name, as the next version if its definition or content has changed.

        Args:
            workspace: The workspace to register it in.
            name: A name of 1 to 255 characters.
            description: Free text.
            tags: Labels.
            create_new_version: Allow a name that is registered already.

        Returns:
            The registered dataset.

        Raises:
            UserErrorException: The name exists and ``create_new_version`` is False.
        """
        if not isinstance(name, str) or not name.strip() or len(name) > 255:
            raise validation.invalid("name", name, "a text of 1 to 255 characters", error=UserErrorException)
        self._refuse_in_run()
        from runyard.sdk.data.pinning import pin

        pin(workspace.connection, self._definition)
        view = workspace.connection.post(
            "/api/datasets",
            {
                "definition": to_json(self._definition),
                "name": name,
                "description": validation.text("description", description, error=UserErrorException),
                "tags": as_labels(tags, "tags"),
                "create_new_version": validation.flag(
                    "create_new_version", create_new_version, error=UserErrorException
                ),
                "run_id": os.environ.get("RUNYARD_RUN_ID"),
            },
        )
        return type(self)._create(self._definition, workspace, view)

    def unregister_all_versions(self) -> None:
        """Free the name. Runs that used the dataset still refer to it by its id."""
        name = self._require_registered("unregister_all_versions")["name"]
        self._connection.delete("/api/datasets", name=name)
        self._view = None

    def update(self, description: Optional[str] = None, tags: Optional[dict[str, Any]] = None) -> AbstractDataset:
        """Replace the description, the tags, or both."""
        labels = as_labels(tags, "tags") if tags is not None else None
        return self._patch(validation.text("description", description, error=UserErrorException), labels)

    def add_tags(self, tags: Optional[dict[str, Any]] = None) -> AbstractDataset:
        return self._patch(None, {**self.tags, **as_labels(tags, "tags")})

    def remove_tags(self, tags: Optional[list[str]] = None) -> AbstractDataset:
        removed = [tags] if isinstance(tags, str) else list(tags or ())
        return self._patch(None, {key: value for key, value in self.tags.items() if key not in removed})

    @property
    def id(self) -> Optional[str]:
        return self._view["dataset_id"] if self._view else None

    @property
    def name(self) -> Optional[str]:
        return self._view["name"] if self._view else None

    @property
    def version(self) -> Optional[int]:
        return self._view["version"] if self._view else None

    @property
    def description(self) -> Optional[str]:
        return self._view["description"] if self._view else None

    @property
    def tags(self) -> dict[str, Optional[str]]:
        return dict(self._view["tags"]) if self._view else {}

    @property
    def digest(self) -> Optional[str]:
        """Hash of its content at registration."""
        return self._view["digest"] if self._view else None

    def as_named_input(self, name: str) -> DatasetConsumptionConfig:
        """Return an input for a run; the script finds it as ``run.input_datasets[name]``."""
        from runyard.sdk.data.consumption import DatasetConsumptionConfig

        self._refuse_in_run()
        return DatasetConsumptionConfig(name, self)

    def take(self: D, count: int) -> D:
        """Return a dataset of the first ``count`` files or rows."""
        return self._with_step(Step(TAKE, count=_count(count)))

    def skip(self: D, count: int) -> D:
        """Return a dataset without the first ``count`` files or rows."""
        return self._with_step(Step(SKIP, count=_count(count)))

    def take_sample(self: D, probability: float, seed: Optional[int] = None) -> D:
        """Return a random sample: each file or row with this probability. The same seed gives the same sample."""
        return self._with_step(Step(SAMPLE, share=_share("probability", probability), seed=_seed(seed)))

    def random_split(self: D, percentage: float, seed: Optional[int] = None) -> tuple[D, D]:
        """Return two disjoint datasets, the first with a share of about ``percentage`` (between 0 and 1)."""
        share, split_seed = _share("percentage", percentage), _seed(seed)
        first = self._with_step(Step(PART, lower=0.0, share=share, seed=split_seed))
        return first, self._with_step(Step(PART, lower=share, share=1.0, seed=split_seed))

    def __repr__(self) -> str:
        sources = ", ".join(
            f"{source.datastore}/{source.path}" if source.datastore else source.url
            for source in self._definition.sources[:3]
        )
        parts = [f"name={self.name!r}", f"version={self.version}"] if self.name else []
        parts += [f"source=[{sources}]"] if sources else []  # inside a run, a dataset has only its files
        return f"{type(self).__name__}({', '.join(parts)})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._definition == other._definition and self.id == other.id

    def __hash__(self) -> int:
        return hash((self._definition.key, self.id))

    @property
    def _connection(self) -> Connection:
        if self._workspace is None:
            from runyard.sdk.core.workspace import Workspace

            self._workspace = Workspace()
        return self._workspace.connection

    def _ensure_saved(self, workspace: Workspace) -> dict[str, Any]:
        """Return the yard's view of the dataset, saving it first if it has no id."""
        self._refuse_in_run()
        from runyard.sdk.data.pinning import pin

        pin(workspace.connection, self._definition)  # waits by polling: no request may last for hours
        if self._view is None:
            self._view = workspace.connection.post("/api/datasets", {"definition": to_json(self._definition)})
        return self._view

    def _resolve_files(self) -> Path:
        """Return the path of its files on this machine; the yard downloads them if necessary."""
        if self._local_path is not None:
            return self._local_path
        from runyard.sdk.data.pinning import pin

        pin(self._connection, self._definition)
        return Path(self._connection.post("/api/datasets/here", {"definition": to_json(self._definition)})["path"])

    def _with_step(self: D, step: Step) -> D:
        dataset = type(self)._create(
            dataclasses.replace(self._definition, steps=(*self._definition.steps, step)), self._workspace
        )
        dataset._local_path, dataset._applied_steps = self._local_path, self._applied_steps
        return dataset

    def _remaining_steps(self) -> tuple[Step, ...]:
        """Return the steps to apply here: the yard applies its own, a script those that it added to its input."""
        return self._definition.steps[self._applied_steps :] if self._local_path is not None else ()

    def _patch(self, description: Optional[str], tags: Optional[dict[str, Optional[str]]]) -> AbstractDataset:
        dataset_id = self._require_registered("update")["dataset_id"]
        body = {"description": description, "tags": tags}
        self._view = self._connection.patch(f"/api/datasets/{dataset_id}", body)
        return self

    def _require_registered(self, operation: str) -> dict[str, Any]:
        if self._view is None or not self._view["name"]:
            raise UserErrorException(
                f"{operation} requires a registered dataset, and this one is not registered",
                hint="dataset.register(workspace, name) registers it",
            )
        return self._view

    def _refuse_in_run(self) -> None:
        if self._local_path is not None:
            raise UserErrorException(
                "a run's input dataset refers to files on this node and cannot be registered or submitted",
                hint="Dataset.get_by_name(run.experiment.workspace, name) returns the registered one",
            )

    def _argument_error(self) -> UserErrorException:
        return UserErrorException(
            f"a {type(self).__name__} cannot be passed directly as an argument or input",
            hint=self._ARGUMENT_HINT,
        )


def dataset_from_view(view: dict[str, Any], workspace: Any) -> AbstractDataset:
    """Return the dataset that the yard described."""
    from runyard.sdk.data.factory import dataset_class

    definition = from_json(DatasetDefinition, view["definition"])
    return dataset_class(definition)._create(definition, workspace, view)


def _version(version: Any) -> int:
    try:
        return int(version)
    except (TypeError, ValueError):
        raise validation.invalid("version", version, "a number or 'latest'", error=UserErrorException) from None


def _count(count: Any) -> int:
    return validation.count("count", count, error=UserErrorException)


def _share(parameter: str, share: Any) -> float:
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share < 1:
        raise validation.invalid(parameter, share, "a number between 0 and 1", error=UserErrorException)
    return float(share)


def _seed(seed: Any) -> int:
    if seed is None:
        return secrets.randbelow(1 << 31)
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise validation.invalid("seed", seed, "a whole number", error=UserErrorException)
    return seed
