"""Experiment: a named group of runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal, Optional, Union, overload

from runyard.errors import RunyardException, UserErrorException
from runyard.sdk.azureml import no_effect
from runyard.sdk.core.labels import as_labels
from runyard.sdk.run.base import Portal
from runyard.spec.names import EXPERIMENT_NAME

if TYPE_CHECKING:
    from runyard.sdk.core.workspace import Workspace
    from runyard.sdk.run.run import Run
    from runyard.sdk.training.submit import DryRun

LabelFilter = Optional[Union[str, dict[str, Any]]]


class Experiment(Portal):
    """A named group of runs: ``Experiment(workspace, 'digits')``, or ``Experiment('digits')`` on this machine.

    Args:
        workspace: The workspace, or the name of the experiment in the yard of this machine.
        name: 1 to 255 letters, digits, ``-`` and ``_``, beginning with a letter or digit.

    Raises:
        UserErrorException: The name is not valid.
    """

    def __init__(self, workspace: Workspace | str, name: str | None = None, **settings: Any) -> None:
        from runyard.sdk.core.workspace import Workspace

        if isinstance(workspace, str) and name is None:
            name = workspace
            workspace = Workspace()
        if not isinstance(workspace, Workspace):
            raise UserErrorException(f"workspace must be a Workspace, got {type(workspace).__name__} {workspace!r}")
        if not isinstance(name, str) or not EXPERIMENT_NAME.fullmatch(name):
            raise UserErrorException(
                f"{name!r} cannot be the name of an experiment",
                hint="1 to 255 characters: a letter or digit first, then letters, digits, '-' and '_'",
            )
        self.workspace = workspace
        self.name = name
        for argument, value in settings.items():
            no_effect.warn_ignored(self, argument, value, "an experiment has no settings besides its name")

    @overload
    def submit(
        self, config: Any, tags: dict[str, Any] | None = None, *, dry_run: Literal[False] = False, **kwargs: Any
    ) -> Run: ...

    @overload
    def submit(
        self, config: Any, tags: dict[str, Any] | None = None, *, dry_run: Literal[True], **kwargs: Any
    ) -> DryRun: ...

    def submit(
        self, config: Any, tags: dict[str, Any] | None = None, *, dry_run: bool = False, **kwargs: Any
    ) -> Run | DryRun:
        """Submit an estimator, a ScriptRunConfig or a sweep, and return its run immediately.

        Args:
            config: An Estimator, PyTorch, TensorFlow, SKLearn, ScriptRunConfig or HyperDriveConfig.
            tags: Tags of the run; values are converted to text.
            dry_run: Start nothing, and return the command and variables of every process as text.
            **kwargs: For an estimator, ``script_params``, ``inputs`` and ``source_directory_data_store`` to override.

        Returns:
            A ScriptRun, or a HyperDriveRun for a sweep.

        Raises:
            TrainingException: The folder or script of an estimator is not usable.
            ExperimentExecutionException: The folder or script of a ScriptRunConfig is not usable.
            RunyardException: ``config`` is of another type.
        """
        from runyard.sdk.training.submit import render_dry_run, submit_run

        start = getattr(config, "_start", None)
        if start is not None:  # a sweep, which starts its own runs
            if dry_run:
                raise RunyardException("a sweep has no dry run", hint="submit its estimator with dry_run=True")
            sweep: Run = start(self, tags, **kwargs)
            return sweep
        submission = getattr(config, "_submission", None)
        if submission is None:
            raise RunyardException(
                f"a {type(config).__name__} cannot be submitted",
                hint="submit an Estimator, PyTorch, TensorFlow, SKLearn, ScriptRunConfig or HyperDriveConfig",
            )
        if dry_run:
            return render_dry_run(self, submission(**kwargs))
        return submit_run(self, submission(**kwargs), tags)

    def start_logging(
        self,
        *args: Any,
        snapshot_directory: str | None = ".",
        outputs: str | None = None,
        display_name: str | None = None,
        **kwargs: Any,
    ) -> Run:
        """Start an interactive run in this process. It ends with ``complete()``, the ``with`` block or the process.

        Args:
            snapshot_directory: Folder whose code is stored with the run; None stores none.
            outputs: Folder whose files are uploaded at the end; created immediately.
            display_name: Name of the run.
        """
        from runyard.sdk.training.submit import begin_run

        for argument, value in kwargs.items():
            no_effect.warn_ignored(
                "Experiment.start_logging", argument, value, "an interactive run has no such setting"
            )
        return begin_run(self, snapshot_directory=snapshot_directory, outputs=outputs or "outputs", name=display_name)

    def get_runs(
        self,
        type: str | None = None,
        tags: LabelFilter = None,
        properties: LabelFilter = None,
        include_children: bool = False,
    ) -> Iterator[Run]:
        """Yield the runs of the experiment, newest first.

        Args:
            type: Type of the runs, such as ``azureml.scriptrun``.
            tags: A tag that must exist, or a dict of tags and their values.
            properties: The same for properties.
            include_children: Also yield child runs.
        """
        from runyard.sdk.run.listing import list_runs

        return list_runs(
            self.workspace,
            experiment=self.name,
            type=type,
            tags=tags,
            properties=properties,
            include_children=include_children,
        )

    def to_dataframe(self, query: str = "") -> Any:
        """Return the runs as a pandas DataFrame, newest first.

        There is a column for each parameter, each tag, and the last value of each metric.

        Args:
            query: Filter in the syntax of the studio, such as ``status:completed lr>0.01``.
        """
        from runyard.sdk.notebook.dataframe import runs_frame

        return runs_frame(self.workspace.connection, self.name, query)

    @property
    def id(self) -> str:
        """The same as the name."""
        return self.name

    @property
    def identity(self) -> str:
        return self.DELIM.join((self.workspace.name, self.name))

    @property
    def workspace_object(self) -> Workspace:
        return self.workspace

    @property
    def tags(self) -> dict[str, str | None]:
        return dict(self._stored().get("tags", {}))

    def tag(self, key: str, value: Any = None) -> None:
        self.set_tags({key: value})

    def set_tags(self, tags: dict[str, Any]) -> None:
        """Set tags; values are converted to text."""
        self._change(set=as_labels(tags, "tags"))

    def remove_tags(self, tags: Union[str, Iterable[str]]) -> None:
        self._change(remove=[tags] if isinstance(tags, str) else [*tags])

    @property
    def archived_time(self) -> str | None:
        from runyard.clock import utc_text

        archived_at = self._stored().get("archived_at")
        return utc_text(archived_at) if archived_at else None

    def archive(self) -> None:
        """Hide the experiment from ``Experiment.list``; its runs are not changed."""
        self._change(archived=True)

    def reactivate(self, new_name: str | None = None) -> None:
        """Undo :meth:`archive`. A ``new_name`` raises UserErrorException: runs are stored under the old one."""
        if new_name not in (None, self.name):
            raise UserErrorException(
                f"experiment {self.name!r} cannot be renamed to {new_name!r}: its runs are stored under its name",
                hint="reactivate it without new_name, and submit new runs to another experiment",
            )
        self._change(archived=False)

    def refresh(self) -> None:
        """Do nothing: labels are requested each time."""

    def get_portal_url(self) -> str:
        """Return the URL of the yard's folder; `runyard studio` has a page for the experiment."""
        return self.workspace.home.as_uri()

    @staticmethod
    def delete(workspace: Workspace, experiment_id: str) -> None:
        """Delete an experiment that has no runs.

        Raises:
            UserErrorException: It has runs, or does not exist.
        """
        runs = workspace.connection.get("/api/runs", experiment=experiment_id, include_children=True, limit=1)["runs"]
        if runs:
            raise UserErrorException(
                f"experiment {experiment_id!r} has runs, and cannot be deleted",
                hint="archive() removes it from the list",
            )
        if experiment_id not in workspace.experiments:
            raise UserErrorException(
                f"no experiment {experiment_id!r} in workspace {workspace.name!r}",
                hint="Experiment.list(workspace, view_type='All') lists all experiments",
            )
        Experiment(workspace, experiment_id).archive()

    @staticmethod
    def from_directory(path: str, auth: Any = None) -> Experiment:
        """Return the experiment with the folder's name, in the workspace of the folder's config.json."""
        from pathlib import Path

        from runyard.sdk.core.workspace import Workspace
        from runyard.spec.names import to_experiment_name

        folder = Path(path).absolute()
        return Experiment(Workspace.from_config(path, auth), to_experiment_name(folder.name))

    @staticmethod
    def list(
        workspace: Workspace,
        experiment_name: str | None = None,
        view_type: str = "ActiveOnly",
        tags: LabelFilter = None,
    ) -> list[Experiment]:
        """List the experiments of a workspace.

        Args:
            workspace: The workspace.
            experiment_name: Only the experiment of this name.
            view_type: ``ActiveOnly``, ``ArchivedOnly`` or ``All``.
            tags: A tag that must exist, or a dict of tags and their values.
        """
        archived = {"activeonly": (False,), "archivedonly": (True,), "all": (False, True)}.get(str(view_type).lower())
        if archived is None:
            raise UserErrorException(
                f"view_type must be 'ActiveOnly', 'ArchivedOnly' or 'All', got {view_type!r}", parameter="view_type"
            )
        filters = {tags: None} if isinstance(tags, str) else as_labels(tags, "tags")
        return [
            Experiment(workspace, view["name"])
            for view in workspace.connection.get("/api/experiments")
            if bool(view["archived_at"]) in archived
            and experiment_name in (None, view["name"])
            and all(key in view["tags"] and value in (None, view["tags"][key]) for key, value in filters.items())
        ]

    def _stored(self) -> dict[str, Any]:
        matches = [e for e in self.workspace.connection.get("/api/experiments") if e["name"] == self.name]
        return matches[0] if matches else {}

    def _change(self, **changes: Any) -> None:
        self.workspace.connection.patch(f"/api/experiments/{self.name}", changes)

    def __repr__(self) -> str:
        return f"Experiment(Name: {self.name},\nWorkspace: {self.workspace.name})"

    def _repr_html_(self) -> str:
        from runyard.sdk.core.display import runs_html

        page = self.workspace.connection.get("/api/runs", experiment=self.name, limit=10)
        return runs_html(f"Experiment {self.name}", page["runs"], more=page["next"] is not None)
