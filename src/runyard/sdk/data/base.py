"""What file datasets and tabular ones have in common: a definition, and perhaps a name, a version and an id."""

from __future__ import annotations

import dataclasses
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Optional, TypeVar

from runyard.errors import UserErrorException
from runyard.sdk.core import validation
from runyard.sdk.core.labels import as_labels
from runyard.spec.dataset import PART, SAMPLE, SKIP, TAKE, DatasetDefinition, Step, from_stored
from runyard.spec.json import to_json

if TYPE_CHECKING:
    from runyard.client.connection import Connection
    from runyard.sdk.core.workspace import Workspace
    from runyard.sdk.data.consumption import DatasetConsumptionConfig

D = TypeVar("D", bound="AbstractDataset")


class AbstractDataset:
    """Never changed: each operation gives another dataset, and nothing is read before somebody asks for the data."""

    File: ClassVar[Any]
    Tabular: ClassVar[Any]
    _AS_AN_ARGUMENT = "say how it comes there: dataset.as_named_input('name').as_mount(), or .as_download()"

    def __init__(self) -> None:
        raise UserErrorException(
            f"a {type(self).__name__} is not made by its class",
            hint="Dataset.File.from_files((datastore, 'folder/')) or Dataset.Tabular.from_delimited_files(…) makes one",
        )

    @classmethod
    def _made(
        cls: type[D],
        definition: DatasetDefinition,
        workspace: Optional[Workspace],
        view: Optional[dict[str, Any]] = None,
    ) -> D:
        made = cls.__new__(cls)
        made._definition = definition
        made._workspace = workspace
        made._view = view
        made._place, made._done = None, 0
        return made

    _definition: DatasetDefinition
    _workspace: Optional[Workspace]
    _view: Optional[dict[str, Any]]
    _place: Optional[Path]  # inside of a run: where its files are
    _done: int  # how many of its steps were done when they came there

    # those that were registered

    @staticmethod
    def get_by_name(workspace: Any, name: str, version: Any = "latest", **kwargs: Any) -> AbstractDataset:
        wanted = None if version in (None, "latest") else _version(version)
        if not isinstance(name, str) or not name:
            raise validation.wrong("name", name, "the name of a dataset", error=UserErrorException)
        view = workspace.connection.get("/api/datasets/one", name=name, version=wanted)
        return of_view(view, workspace)

    @staticmethod
    def get_by_id(workspace: Any, id: str, **kwargs: Any) -> AbstractDataset:
        return of_view(workspace.connection.get("/api/datasets/one", id=str(id)), workspace)

    @staticmethod
    def get_all(workspace: Any) -> dict[str, AbstractDataset]:
        """The newest version of each name."""
        from runyard.sdk.core.workspace import Named

        found = workspace.connection.get("/api/datasets")
        return Named((view["name"], of_view(view, workspace)) for view in found)

    def register(
        self: D,
        workspace: Any,
        name: str,
        description: Optional[str] = None,
        tags: Optional[dict[str, Any]] = None,
        create_new_version: bool = False,
    ) -> D:
        """A name for it, in versions: the next one is made when its definition or its content is another."""
        if not isinstance(name, str) or not name.strip() or len(name) > 255:
            raise validation.wrong("name", name, "a text of 1 to 255 characters", error=UserErrorException)
        self._refuse_inside()
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
        return type(self)._made(self._definition, workspace, view)

    def unregister_all_versions(self) -> None:
        """The name is free again; runs that used it still say so, and find it by its id."""
        name = self._registered("unregister_all_versions")["name"]
        self._connection.delete("/api/datasets", name=name)
        self._view = None

    def update(self, description: Optional[str] = None, tags: Optional[dict[str, Any]] = None) -> AbstractDataset:
        """Another description or other tags, in place of those that are there."""
        wanted = as_labels(tags, "tags") if tags is not None else None
        return self._change(validation.text("description", description, error=UserErrorException), wanted)

    def add_tags(self, tags: Optional[dict[str, Any]] = None) -> AbstractDataset:
        return self._change(None, {**self.tags, **as_labels(tags, "tags")})

    def remove_tags(self, tags: Optional[list[str]] = None) -> AbstractDataset:
        gone = [tags] if isinstance(tags, str) else list(tags or ())
        return self._change(None, {key: value for key, value in self.tags.items() if key not in gone})

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
        """The hash of the content that it pointed to when it was registered."""
        return self._view["digest"] if self._view else None

    # as an input of a run

    def as_named_input(self, name: str) -> DatasetConsumptionConfig:
        from runyard.sdk.data.consumption import DatasetConsumptionConfig

        self._refuse_inside()
        return DatasetConsumptionConfig(name, self)

    # parts of it

    def take(self: D, count: int) -> D:
        return self._then(Step(TAKE, count=_count(count)))

    def skip(self: D, count: int) -> D:
        return self._then(Step(SKIP, count=_count(count)))

    def take_sample(self: D, probability: float, seed: Optional[int] = None) -> D:
        """Each one with that probability; the same seed gives the same ones."""
        return self._then(Step(SAMPLE, share=_share("probability", probability), seed=_seed(seed)))

    def random_split(self: D, percentage: float, seed: Optional[int] = None) -> tuple[D, D]:
        """Two parts that have nothing in common, the first of about ``percentage`` (between 0 and 1)."""
        share, chosen = _share("percentage", percentage), _seed(seed)
        first = self._then(Step(PART, lower=0.0, share=share, seed=chosen))
        return first, self._then(Step(PART, lower=share, share=1.0, seed=chosen))

    # how it shows itself

    def __repr__(self) -> str:
        sources = ", ".join(f"{one.datastore}/{one.path}" if one.datastore else one.url for one in _few(self))
        named = [f"name={self.name!r}", f"version={self.version}"] if self.name else []
        told = [*named, f"source=[{sources}]"] if sources else named  # a script is given the files alone
        return f"{type(self).__name__}({', '.join(told)})"

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

    def _saved(self, workspace: Workspace) -> dict[str, Any]:
        """As the yard knows it, with an id."""
        self._refuse_inside()
        from runyard.sdk.data.pinning import pin

        pin(workspace.connection, self._definition)  # as long as that takes: no request may last for hours
        if self._view is None:
            self._view = workspace.connection.post("/api/datasets", {"definition": to_json(self._definition)})
        return self._view

    def _here(self) -> Path:
        """Its files on this machine: the folder itself, or what the yard has brought."""
        if self._place is not None:
            return self._place
        from runyard.sdk.data.pinning import pin

        pin(self._connection, self._definition)
        return Path(self._connection.post("/api/datasets/here", {"definition": to_json(self._definition)})["path"])

    def _then(self: D, step: Step) -> D:
        made = type(self)._made(
            dataclasses.replace(self._definition, steps=(*self._definition.steps, step)), self._workspace
        )
        made._place, made._done = self._place, self._done
        return made

    def _steps_left(self) -> tuple[Step, ...]:
        """The yard does all of them; a script that was given a dataset does those that it added."""
        return self._definition.steps[self._done :] if self._place is not None else ()

    def _change(self, description: Optional[str], tags: Optional[dict[str, Optional[str]]]) -> AbstractDataset:
        known = self._registered("update")
        body = {"description": description, "tags": tags}
        self._view = self._connection.patch(f"/api/datasets/{known['dataset_id']}", body)
        return self

    def _registered(self, what: str) -> dict[str, Any]:
        if self._view is None or not self._view["name"]:
            raise UserErrorException(
                f"{what} is for datasets that are registered, and this one is not",
                hint="dataset.register(workspace, name) gives it a name",
            )
        return self._view

    def _refuse_inside(self) -> None:
        if self._place is not None:
            raise UserErrorException(
                "a dataset that a script was given is its files on this node, and cannot be registered or submitted",
                hint="Dataset.get_by_name(run.experiment.workspace, name) gives the registered one",
            )

    def _not_an_argument(self) -> UserErrorException:
        return UserErrorException(
            f"a {type(self).__name__} cannot be an argument or an input as it is",
            hint=self._AS_AN_ARGUMENT,
        )


def of_view(view: dict[str, Any], workspace: Any) -> AbstractDataset:
    """The dataset that the yard described."""
    from runyard.sdk.data.factory import class_of

    definition = from_stored(view["definition"])
    return class_of(definition)._made(definition, workspace, view)


def _few(dataset: AbstractDataset) -> Any:
    return dataset._definition.sources[:3]


def _version(version: Any) -> int:
    try:
        return int(version)
    except (TypeError, ValueError):
        raise validation.wrong("version", version, "a number or 'latest'", error=UserErrorException) from None


def _count(count: Any) -> int:
    return validation.count("count", count, error=UserErrorException)


def _share(parameter: str, share: Any) -> float:
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share < 1:
        raise validation.wrong(parameter, share, "a number between 0 and 1", error=UserErrorException)
    return float(share)


def _seed(seed: Any) -> int:
    if seed is None:
        return secrets.randbelow(1 << 31)
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise validation.wrong("seed", seed, "a whole number", error=UserErrorException)
    return seed
