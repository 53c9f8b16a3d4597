"""What runs of the SDK v1 also had, beyond what most scripts use: other ways to find them, names to show, logs at once.

What only a cloud could do is refused in one error that says what to do here instead.
"""

from __future__ import annotations

import os

from runyard.errors import RunyardException, UserErrorException

TYPE_CHECKING = False  # typing itself takes longer to import than this module
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, ClassVar, Optional

    from runyard.client.connection import Connection
    from runyard.sdk.core.experiment import Experiment
    from runyard.sdk.data.reference import DataPath
    from runyard.sdk.environment.environment import Environment
    from runyard.sdk.run.inputs import InputDatasets
    from runyard.sdk.run.run import Run

_DESCRIPTION = "mlflow.note.content"  # the tag that MLflow's clients and pages show as a run's description


class Portal:
    """Pieces of the addresses of a portal that there is no more; some scripts put them together themselves."""

    DELIM = "#"
    WORKSPACE_FMT = "?wsid=/subscriptions/{0}/resourceGroups/{1}/workspaces/{2}"
    TID_FMT = "&tid={0}"
    EXPERIMENT_NAME_PATH = "/experiments/{0}"
    EXPERIMENT_ID_PATH = "/experiments/id/{0}"

    @property
    def portal_url(self) -> str:
        return self.get_portal_url()

    def get_portal_url(self) -> str:
        raise NotImplementedError

    @classmethod
    def get_docs_url(cls) -> str:
        raise UserErrorException(
            "the documentation has no address: it comes with Runyard",
            hint="see docs/ in its folder, or `runyard --help`",
        )


class RunOfV1(Portal):
    RUN_PATH = "/runs/{0}"
    _factories: ClassVar[dict[str, Any]] = {}

    if TYPE_CHECKING:
        id: str
        experiment: Experiment
        _connection: Connection
        _view: dict[str, Any]

        def get_status(self) -> str: ...
        def _refresh(self) -> dict[str, Any]: ...
        def get_details_with_logs(self) -> dict[str, Any]: ...
        def set_tags(self, tags: dict[str, Any]) -> None: ...

    # what it was given

    @property
    def input_datasets(self) -> InputDatasets:
        """By the name of the input: inside of the script the path of the data, outside of it the dataset."""
        from runyard.sdk.run import inputs

        if self.id == os.environ.get("RUNYARD_RUN_ID"):
            return inputs.of_this_script()
        return inputs.of_run(self._view, self.experiment.workspace)

    # found by other ways

    @staticmethod
    def get(workspace: Any, run_id: str) -> Run:
        """The run of that id, whatever its experiment is."""
        from runyard.sdk.core.experiment import Experiment
        from runyard.sdk.run.listing import opened

        view = workspace.connection.get(f"/api/runs/{run_id}")
        return opened(Experiment(workspace, view["experiment"]), view)

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
        """Newest first, as ``experiment.get_runs`` has them."""
        from runyard.sdk.run.listing import list_runs

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
        """The runs of a compute target, newest first; those that have not ended, unless ``status`` says otherwise."""
        from runyard.sdk.run.listing import list_runs
        from runyard.spec.names import ENDED

        found = list_runs(
            compute.workspace, type=type, tags=tags, properties=properties, status=status, include_children=True
        )
        for run in found:
            if run._view["target"] == compute.name and (status is not None or run.status not in ENDED):
                yield run

    @staticmethod
    def add_type_provider(runtype: str, run_factory: Any) -> None:
        """``run_factory(experiment, run_view)`` opens the runs of that type from now on, in this process."""
        RunOfV1._factories[runtype] = run_factory

    # names and states

    @property
    def identity(self) -> str:
        return self.DELIM.join((self.experiment.name, self.id))

    @property
    def display_name(self) -> str:
        return str(self._view["name"] or self.id)

    @display_name.setter
    def display_name(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise UserErrorException(f"the name of a run is text, not {name!r}")
        self._view = self._connection.patch(f"/api/runs/{self.id}", {"name": name})

    @property
    def description(self) -> Optional[str]:
        found: Optional[str] = self._view["tags"].get(_DESCRIPTION)
        return found

    @description.setter
    def description(self, text: str) -> None:
        self.set_tags({_DESCRIPTION: text})

    def get_detailed_status(self) -> dict[str, Optional[str]]:
        """``status``, and in ``details`` what is waited for right now."""
        status = self.get_status()
        return {"status": status, "details": self._view["activity"] or None}

    def get_snapshot_id(self) -> str:
        found = self._refresh()["snapshot_id"]
        if not found:
            raise UserErrorException(f"run {self.id} has no snapshot", hint="run.take_snapshot(folder) takes one")
        return str(found)

    def get_environment(self) -> Environment:
        from runyard.sdk.environment.environment import Environment

        spec = self._view["spec"]
        if spec is None:
            raise UserErrorException(f"run {self.id} is interactive: its environment is that of the process it ran in")
        return Environment.from_spec(spec["environment"])

    # logs, files, secrets

    def get_all_logs(self, destination: Optional[str] = None) -> Any:
        """Writes every log below ``destination`` (default: ``assets/<run id>``) and returns where each one is."""
        from pathlib import Path

        folder = Path(destination) if destination else Path("assets") / self.id
        if folder.exists() and not folder.is_dir():
            raise UserErrorException(f"{str(folder)!r} is a file, and logs go into a folder")
        written = []
        for name, text in self.get_details_with_logs()["logFiles"].items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
            written.append(str(target))
        return written

    def _get_outputs_datapath(self) -> DataPath:
        """For ``resume_from``; by this name, which published notebooks use."""
        from runyard.sdk.training.resume import outputs_datapath

        run: Any = self
        return outputs_datapath(run)

    def start(self) -> None:
        """Nothing to do: a run that is there was started, or is waiting for its turn."""

    def clean(self) -> Any:
        """Removes nothing: what a run wrote for itself is removed when it ends, and its files are kept."""
        return []

    def get_secret(self, name: str) -> str:
        """From the environment of this process: a yard keeps no secrets, and a run gets them as variables."""
        found = os.environ.get(name)
        if found is None:
            raise UserErrorException(
                f"there is no secret {name!r}: this process has no environment variable of that name",
                hint="give it to the run with environment_variables={…}, taken from your own environment",
            )
        return found

    def get_secrets(self, secrets: Any) -> dict[str, str]:
        return {name: self.get_secret(name) for name in secrets}

    def submit_child(self, config: Any, tags: dict[str, Any] | None = None, **kwargs: Any) -> Run:
        from runyard.sdk.training.submit import submit_run

        submission = getattr(config, "_submission", None)
        if submission is None:
            raise RunyardException(f"a {type(config).__name__} cannot be submitted")
        return submit_run(self.experiment, submission(**kwargs), tags, parent_id=self.id)
