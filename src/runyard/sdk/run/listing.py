"""Finding runs, and the runs below a run."""

from __future__ import annotations

from runyard.errors import RunyardException, UserErrorException
from runyard.sdk.run.base import RunBase

TYPE_CHECKING = False  # importing typing takes longer than importing this module
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, ClassVar, Optional

    from runyard.sdk.core.experiment import Experiment
    from runyard.sdk.core.workspace import Workspace
    from runyard.sdk.run.run import Run


class RunChildren(RunBase):
    @property
    def parent(self) -> Optional[Run]:
        """The run that started this one; None for a top-level run."""
        parent_id = self._view["parent_id"]
        return open_run(self.experiment, self._connection.get(f"/api/runs/{parent_id}")) if parent_id else None

    def get_children(
        self,
        recursive: bool = False,
        tags: Any = None,
        properties: Any = None,
        type: str | None = None,
        status: str | None = None,
        _rehydrate_runs: bool = True,
    ) -> Iterator[Run]:
        """Yield the child runs, newest first.

        Args:
            recursive: Also yield the children of the children.
            tags: A tag that must exist, or a dict of tags and their values.
            properties: The same for properties.
            type: Type of the runs, such as ``azureml.scriptrun``.
            status: Status of the runs, such as ``Failed``.
        """
        for child in list_runs(
            self.experiment.workspace, parent=self.id, tags=tags, properties=properties, type=type, status=status
        ):
            yield child
            if recursive:
                yield from child.get_children(True, tags, properties, type, status)

    def child_run(self, name: str | None = None, run_id: str | None = None, outputs: str | None = None) -> Run:
        """Start an interactive child run in this process.

        Args:
            name: Name of the child; it is appended to the parent's name.
            run_id: Has no effect; the yard assigns the id.
            outputs: Folder whose files are uploaded when the child ends.
        """
        from runyard.sdk.azureml import no_effect
        from runyard.sdk.training.submit import begin_run

        no_effect.warn_ignored("Run.child_run", "run_id", run_id, "the yard assigns the id of a child")
        return begin_run(self.experiment, name=name, outputs=outputs, parent_id=self.id)

    def create_children(
        self, count: int | None = None, tag_key: str | None = None, tag_values: list[Any] | None = None
    ) -> list[Run]:
        """Start several child runs: ``count`` of them, or one for each value of a tag.

        Args:
            count: Number of runs, 1 to 100.
            tag_key: Name of a tag; requires ``tag_values`` and excludes ``count``.
            tag_values: Values of the tag.

        Raises:
            UserErrorException: The arguments exclude each other, or ``count`` is out of range.
        """
        from runyard.sdk.training.submit import begin_run

        if (count is None) == (tag_key is None) or (tag_key is None) != (tag_values is None):
            raise UserErrorException("create_children takes either count, or tag_key with tag_values")
        if count is not None and (not isinstance(count, int) or not 1 <= count <= 100):
            raise UserErrorException(f"count must be between 1 and 100, got {count!r}")
        tags: list[dict[str, Any] | None] = [None] * (count or 0)
        if tag_key is not None:
            tags = [{tag_key: value} for value in tag_values or []]
        return [begin_run(self.experiment, parent_id=self.id, tags=tag) for tag in tags]

    def submit_child(self, config: Any, tags: dict[str, Any] | None = None, **kwargs: Any) -> Run:
        """Submit an estimator or a ScriptRunConfig as a child of this run.

        Args:
            config: The estimator or ScriptRunConfig.
            tags: Tags of the child.
            **kwargs: The overrides that ``experiment.submit`` takes.
        """
        from runyard.sdk.training.submit import submit_run

        submission = getattr(config, "_submission", None)
        if submission is None:
            raise RunyardException(f"a {type(config).__name__} cannot be submitted")
        return submit_run(self.experiment, submission(**kwargs), tags, parent_id=self.id)


class RunListing(RunChildren):
    _factories: ClassVar[dict[str, Any]] = {}

    @staticmethod
    def get(workspace: Any, run_id: str) -> Run:
        """Open a run by its id, in any experiment.

        Raises:
            RunNotFound: The yard has no such run.
        """
        from runyard.sdk.core.experiment import Experiment

        view = workspace.connection.get(f"/api/runs/{run_id}")
        return open_run(Experiment(workspace, view["experiment"]), view)

    @staticmethod
    def list(
        experiment: Experiment,
        type: Optional[str] = None,
        tags: Any = None,
        properties: Any = None,
        status: Optional[str] = None,
        include_children: bool = False,
        _rehydrate_runs: bool = True,
    ) -> Iterator[Run]:
        """Yield the runs of an experiment, newest first. The filters are those of ``experiment.get_runs``."""
        return list_runs(
            experiment.workspace,
            experiment=experiment.name,
            type=type,
            tags=tags,
            properties=properties,
            status=status,
            include_children=include_children,
        )

    @staticmethod
    def list_by_compute(
        compute: Any,
        type: Optional[str] = None,
        tags: Any = None,
        properties: Any = None,
        status: Optional[str] = None,
    ) -> Iterator[Run]:
        """Yield the runs of a compute target, newest first: the active ones, or those with the given ``status``."""
        from runyard.spec.names import TERMINAL_STATES

        for run in list_runs(
            compute.workspace, type=type, tags=tags, properties=properties, status=status, include_children=True
        ):
            if run._view["target"] == compute.name and (status is not None or run.status not in TERMINAL_STATES):
                yield run

    @staticmethod
    def add_type_provider(runtype: str, run_factory: Any) -> None:
        """Open runs of a type by ``run_factory(experiment, view)``, in this process."""
        RunListing._factories[runtype] = run_factory


def list_runs(workspace: Workspace, *, tags: Any = None, properties: Any = None, **query: Any) -> Iterator[Run]:
    """Yield runs newest first, page by page."""
    from runyard.sdk.core.experiment import Experiment

    before: Optional[int] = None
    while True:
        page = workspace.connection.get(
            "/api/runs",
            tags=_label_filter(tags, "tags"),
            properties=_label_filter(properties, "properties"),
            before=before,
            limit=200,
            **query,
        )
        for view in page["runs"]:
            yield open_run(Experiment(workspace, view["experiment"]), view)
        before = page["next"]
        if before is None:
            return


def open_run(experiment: Experiment, view: dict[str, Any]) -> Run:
    """Create the object of a run with the class of its type."""
    factory = RunListing._factories.get(view["type"])
    if factory is not None:
        run: Run = factory(experiment, view)
        return run
    if view["type"] == "hyperdrive":
        from runyard.sdk.hyperdrive.run import HyperDriveRun

        return HyperDriveRun(experiment, view["run_id"], _view=view)
    if view["type"] == "azureml.scriptrun":
        from runyard.sdk.run.script_run import ScriptRun

        return ScriptRun(experiment, view["run_id"], _view=view)
    from runyard.sdk.run.run import Run

    return Run(experiment, view["run_id"], _view=view)


def _label_filter(labels: Any, name: str) -> str | None:
    if labels is None:
        return None
    import json

    from runyard.sdk.core.labels import as_labels

    return json.dumps({labels: None} if isinstance(labels, str) else as_labels(labels, name))
