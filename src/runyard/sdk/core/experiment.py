"""Experiment: a name under which runs are kept together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal, Optional, Union, overload

from runyard.errors import RunyardException, UserErrorException
from runyard.sdk.azureml import no_effect
from runyard.sdk.core.labels import as_labels
from runyard.sdk.run.legacy import Portal
from runyard.spec.names import EXPERIMENT_NAME

if TYPE_CHECKING:
    from runyard.sdk.core.workspace import Workspace
    from runyard.sdk.run.run import Run
    from runyard.sdk.training.submit import DryRun

Wanted = Optional[Union[str, dict[str, Any]]]


class Experiment(Portal):
    """``Experiment(workspace, 'digits')``, or ``Experiment('digits')`` in the yard of this machine."""

    def __init__(self, workspace: Workspace | str, name: str | None = None, **settings: Any) -> None:
        from runyard.sdk.core.workspace import Workspace

        if isinstance(workspace, str) and name is None:
            name = workspace
            workspace = Workspace()
        if not isinstance(workspace, Workspace):
            raise UserErrorException(f"an experiment needs a Workspace, not {type(workspace).__name__} {workspace!r}")
        if not isinstance(name, str) or not EXPERIMENT_NAME.fullmatch(name):
            raise UserErrorException(
                f"{name!r} cannot be the name of an experiment",
                hint="1 to 255 characters: a letter or digit first, then letters, digits, '-' and '_'",
            )
        self.workspace = workspace
        self.name = name
        for argument, value in settings.items():
            no_effect.told(self, argument, value, "an experiment is its name, in a workspace")

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
        """Starts an estimator or a ScriptRunConfig and returns at once.

        With ``dry_run`` nothing is started: what comes back prints as what each process would get.
        """
        from runyard.sdk.training.submit import rehearse_run, submit_run

        start = getattr(config, "_start", None)
        if start is not None:  # a sweep: it starts runs of its own
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
            return rehearse_run(self, submission(**kwargs))
        return submit_run(self, submission(**kwargs), tags)

    def start_logging(
        self,
        *args: Any,
        snapshot_directory: str | None = ".",
        outputs: str | None = None,
        display_name: str | None = None,
        **kwargs: Any,
    ) -> Run:
        """An interactive run of this very process: logs at once, ends with ``complete()`` or the ``with`` block."""
        from runyard.sdk.training.submit import begin_run

        for argument, value in kwargs.items():
            no_effect.told("Experiment.start_logging", argument, value, "a run of this process has no such setting")
        return begin_run(self, snapshot_directory=snapshot_directory, outputs=outputs or "outputs", name=display_name)

    def get_runs(
        self,
        type: str | None = None,
        tags: Wanted = None,
        properties: Wanted = None,
        include_children: bool = False,
    ) -> Iterator[Run]:
        """Newest first; a label given as text must be there, one given in a dict must have that value."""
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
        """The runs as a pandas frame, newest first: a column for each parameter, tag, and metric's last value.

        ``query`` chooses among them, in the words of the studio: ``status:completed lr>0.01``.
        """
        from runyard.sdk.notebook.dataframe import runs_frame

        return runs_frame(self.workspace.connection, self.name, query)

    # labels, and whether it is still wanted

    @property
    def id(self) -> str:
        """Its name: there is no other name for it."""
        return self.name

    @property
    def identity(self) -> str:
        return self.DELIM.join((self.workspace.name, self.name))

    @property
    def workspace_object(self) -> Workspace:
        return self.workspace

    @property
    def tags(self) -> dict[str, str | None]:
        return dict(self._kept().get("tags", {}))

    def tag(self, key: str, value: Any = None) -> None:
        self.set_tags({key: value})

    def set_tags(self, tags: dict[str, Any]) -> None:
        self._change(set=as_labels(tags, "tags"))

    def remove_tags(self, tags: Union[str, Iterable[str]]) -> None:
        self._change(remove=[tags] if isinstance(tags, str) else [*tags])

    @property
    def archived_time(self) -> str | None:
        from runyard.clock import utc_text

        at = self._kept().get("archived_at")
        return utc_text(at) if at else None

    def archive(self) -> None:
        """Out of ``Experiment.list``; its runs stay as they are."""
        self._change(archived=True)

    def reactivate(self, new_name: str | None = None) -> None:
        if new_name not in (None, self.name):
            raise UserErrorException(
                f"experiment {self.name!r} cannot become {new_name!r}: its runs are kept under its name",
                hint="reactivate it without new_name, and submit what comes next to another experiment",
            )
        self._change(archived=False)

    def refresh(self) -> None:
        """Nothing to do: labels are asked for each time."""

    def get_portal_url(self) -> str:
        """The folder of the yard: `runyard studio` has a page for the experiment."""
        return self.workspace.home.as_uri()

    @staticmethod
    def delete(workspace: Workspace, experiment_id: str) -> None:
        """Only one without runs: what was measured is not thrown away by a name."""
        runs = workspace.connection.get("/api/runs", experiment=experiment_id, include_children=True, limit=1)["runs"]
        if runs:
            raise UserErrorException(
                f"experiment {experiment_id!r} has runs, and is not deleted",
                hint="archive() takes it out of the list",
            )
        if experiment_id not in workspace.experiments:
            raise UserErrorException(
                f"there is no experiment {experiment_id!r} in workspace {workspace.name!r}",
                hint="Experiment.list(workspace, view_type='All') names those that are there",
            )
        Experiment(workspace, experiment_id).archive()

    @staticmethod
    def from_directory(path: str, auth: Any = None) -> Experiment:
        """The experiment named as the folder, in the workspace that the folder's config.json names."""
        from pathlib import Path

        from runyard.sdk.core.workspace import Workspace
        from runyard.spec.names import experiment_name

        folder = Path(path).absolute()
        return Experiment(Workspace.from_config(path, auth), experiment_name(folder.name))

    @staticmethod
    def list(
        workspace: Workspace, experiment_name: str | None = None, view_type: str = "ActiveOnly", tags: Wanted = None
    ) -> list[Experiment]:
        """``view_type``: ``ActiveOnly``, ``ArchivedOnly`` or ``All``; ``tags`` as ``get_runs`` takes them."""
        wanted = {"activeonly": (False,), "archivedonly": (True,), "all": (False, True)}.get(str(view_type).lower())
        if wanted is None:
            raise UserErrorException(
                f"view_type takes 'ActiveOnly', 'ArchivedOnly' or 'All', not {view_type!r}", parameter="view_type"
            )
        asked = {tags: None} if isinstance(tags, str) else as_labels(tags, "tags")
        return [
            Experiment(workspace, kept["name"])
            for kept in workspace.connection.get("/api/experiments")
            if bool(kept["archived_at"]) in wanted
            and experiment_name in (None, kept["name"])
            and all(key in kept["tags"] and value in (None, kept["tags"][key]) for key, value in asked.items())
        ]

    def _kept(self) -> dict[str, Any]:
        found = [e for e in self.workspace.connection.get("/api/experiments") if e["name"] == self.name]
        return found[0] if found else {}

    def _change(self, **changes: Any) -> None:
        self.workspace.connection.patch(f"/api/experiments/{self.name}", changes)

    def __repr__(self) -> str:
        return f"Experiment(Name: {self.name},\nWorkspace: {self.workspace.name})"

    def _repr_html_(self) -> str:
        from runyard.sdk.core.display import runs_html

        page = self.workspace.connection.get("/api/runs", experiment=self.name, limit=10)
        return runs_html(f"Experiment {self.name}", page["runs"], more=page["next"] is not None)
