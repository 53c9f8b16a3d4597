"""Experiment: a name under which runs are kept together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, Optional, Union, overload

from runyard.errors import RunyardException, UserErrorException
from runyard.spec.names import EXPERIMENT_NAME

if TYPE_CHECKING:
    from runyard.sdk.run import Run
    from runyard.sdk.submitting import DryRun
    from runyard.sdk.workspace import Workspace

Wanted = Optional[Union[str, dict[str, Any]]]


class Experiment:
    """``Experiment(workspace, 'digits')``, or ``Experiment('digits')`` in the yard of this machine."""

    def __init__(self, workspace: Workspace | str, name: str | None = None, **ignored: Any) -> None:
        from runyard.sdk.workspace import Workspace

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
        from runyard.sdk.submitting import rehearse_run, submit_run

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
        from runyard.sdk.submitting import begin_run

        return begin_run(self, snapshot_directory=snapshot_directory, outputs=outputs or "outputs", name=display_name)

    def get_runs(
        self,
        type: str | None = None,
        tags: Wanted = None,
        properties: Wanted = None,
        include_children: bool = False,
    ) -> Iterator[Run]:
        """Newest first; a label given as text must be there, one given in a dict must have that value."""
        from runyard.sdk.run_listing import list_runs

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
        from runyard.sdk.dataframe import runs_frame

        return runs_frame(self.workspace.connection, self.name, query)

    def remove_tags(self, tags: list[str]) -> None:
        for run in self.get_runs():
            run.remove_tags(tags)

    @staticmethod
    def list(workspace: Workspace, experiment_name: str | None = None) -> list[Experiment]:
        found = workspace.experiments.values()
        return [e for e in found if experiment_name is None or e.name == experiment_name]

    def __repr__(self) -> str:
        return f"Experiment(Name: {self.name},\nWorkspace: {self.workspace.name})"

    def _repr_html_(self) -> str:
        from runyard.sdk.showing import runs_html

        page = self.workspace.connection.get("/api/runs", experiment=self.name, limit=10)
        return runs_html(f"Experiment {self.name}", page["runs"], more=page["next"] is not None)
