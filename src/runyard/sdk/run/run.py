"""Run: one run, seen from outside or from inside its script.

Every training script imports this module, and most of them only log metrics. All other imports are made on first use.
"""

from __future__ import annotations

import os

from runyard.errors import RunEnvironmentException, RunNotFound, UserErrorException
from runyard.sdk.run.files import RunFiles
from runyard.sdk.run.labels import RunLabels
from runyard.sdk.run.listing import RunListing
from runyard.sdk.run.metric_logging import MetricLogging

TYPE_CHECKING = False  # importing typing takes longer than importing this module
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any, Optional

    from runyard.sdk.core.experiment import Experiment
    from runyard.sdk.environment.environment import Environment
    from runyard.sdk.run.details import RunAttempt, RunEnd
    from runyard.sdk.run.inputs import InputDatasets
    from runyard.sdk.run.offline_run import OfflineRun

_contexts: dict[tuple[int, str], Run] = {}


class Run(RunFiles, RunLabels, RunListing, MetricLogging):
    """One run. ``Run(experiment, run_id)`` opens an existing one; ``Run.get_context()`` is the run of this script.

    Args:
        experiment: The experiment of the run.
        run_id: Id of an existing run.
        outputs: Has no effect.

    Raises:
        RunNotFound: The yard has no such run.
    """

    RUN_PATH = "/runs/{0}"

    def __init__(
        self, experiment: Experiment, run_id: str, outputs: Any = None, *, _view: dict[str, Any] | None = None, **_: Any
    ) -> None:
        from runyard.spec.names import RUN_ID

        if not isinstance(run_id, str) or not run_id:
            raise UserErrorException(f"run_id must be text, got {run_id!r}")
        if not RUN_ID.fullmatch(run_id):
            raise RunNotFound(f"no run {run_id!r} in this yard", hint="this is not a valid run id")
        self.experiment = experiment
        self.id = run_id
        self._connection = experiment.workspace.connection
        self._view = _view if _view is not None else self._connection.get(f"/api/runs/{run_id}")
        super().__init__(self._view["folder"], rank=0)
        if "RUNYARD_YARD_ELSEWHERE" in os.environ:
            self._disable_journal()

    @classmethod
    def get_context(
        cls, allow_offline: bool = True, used_for_context_manager: bool = False, **_: Any
    ) -> Run | OfflineRun:
        """Return the run of this script.

        Args:
            allow_offline: Outside of a submitted run, return an :class:`OfflineRun`, which prints metrics.
            used_for_context_manager: Has no effect.

        Raises:
            RunEnvironmentException: This process is not part of a run, and ``allow_offline`` is False.
        """
        run_id = os.environ.get("RUNYARD_RUN_ID")
        if not run_id:
            if not allow_offline:
                raise RunEnvironmentException()
            from runyard.sdk.run.offline_run import OfflineRun

            return OfflineRun()
        key = (os.getpid(), run_id)
        if key not in _contexts:
            from runyard.sdk.run.current_run import CurrentRun

            _contexts[key] = CurrentRun(run_id)
        return _contexts[key]

    @classmethod
    def get_submitted_run(cls, **_: Any) -> Run | OfflineRun:
        """The name of :meth:`get_context` in the first releases of the SDK; it never returned an offline run."""
        return cls.get_context(allow_offline=False)

    @property
    def type(self) -> Optional[str]:
        """``azureml.scriptrun``, ``hyperdrive``, or None for an interactive run."""
        run_type: Optional[str] = self._view["type"]
        return run_type

    @property
    def name(self) -> str:
        return self._view["name"] or ""

    @property
    def number(self) -> int:
        """Number of the run in the yard, counted from 1."""
        number: int = self._view["number"]
        return number

    @property
    def identity(self) -> str:
        return self.DELIM.join((self.experiment.name, self.id))

    @property
    def display_name(self) -> str:
        """The name, or the id of a run without a name. It can be set."""
        return str(self._view["name"] or self.id)

    @display_name.setter
    def display_name(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise UserErrorException(f"display_name must be text, got {name!r}")
        self._view = self._connection.patch(f"/api/runs/{self.id}", {"name": name})

    @property
    def folder(self) -> Path:
        """The run's folder on the yard's machine. Read only: files are added with :meth:`upload_file`."""
        from pathlib import Path

        return Path(self._view["folder"])

    def get_portal_url(self) -> str:
        """Return the URL of the run's folder."""
        return self.folder.as_uri()

    @property
    def status(self) -> str:
        """The status of the last request; :meth:`get_status` requests it again."""
        status: str = self._view["status"]
        return status

    @property
    def activity(self) -> str:
        """The current step, or the reason that the run waits; empty once it has ended."""
        self.get_status()
        return str(self._view["activity"])

    @property
    def end(self) -> Optional[RunEnd]:
        """The reason of the run's end, with exit code, rank and traceback; None while it has not ended."""
        from runyard.sdk.run.details import end_of

        self.get_status()
        return end_of(self._view)

    @property
    def attempts(self) -> list[RunAttempt]:
        """The earlier attempts of a run that was started again after a failure, oldest first."""
        from runyard.sdk.run.details import attempts_of

        self.get_status()
        return attempts_of(self._view)

    def get_status(self) -> str:
        """Return the current status, such as ``"Queued"``, ``"Running"`` or ``"Completed"``."""
        from runyard.spec.names import TERMINAL_STATES

        # a submitted run that has ended does not change; others may be continued by MLflow's client
        if self.status not in TERMINAL_STATES or self._view["spec"] is None:
            self._refresh()
        return self.status

    def get_detailed_status(self) -> dict[str, Optional[str]]:
        """Return ``status``, and in ``details`` the current :attr:`activity`."""
        activity = self.activity
        return {"status": self.status, "details": activity or None}

    def get_details(self) -> dict[str, Any]:
        """Return the details of the run in the form of the SDK v1: ``runId``, ``status``, ``runDefinition``, ..."""
        from runyard.sdk.run.details import details_of

        return details_of(self._refresh(), self.get_file_names(), self.experiment.workspace)

    def get_details_with_logs(self) -> dict[str, Any]:
        """The same as :meth:`get_details`, with the text of the logs in ``logFiles``."""
        details = self.get_details()
        details["logFiles"] = {
            name: self._connection.read(f"/api/runs/{self.id}/files/{name}").decode(errors="replace")
            for name in details["logFiles"]
        }
        return details

    def get_environment(self) -> Environment:
        """Return the environment of a submitted run.

        Raises:
            UserErrorException: The run is interactive.
        """
        from runyard.sdk.environment.environment import Environment

        spec = self._view["spec"]
        if spec is None:
            raise UserErrorException(f"run {self.id} is interactive: it uses the environment of its own process")
        return Environment.from_spec(spec["environment"])

    @property
    def input_datasets(self) -> InputDatasets:
        """The input datasets by name: inside of the script the path of the data, outside of it the dataset."""
        from runyard.sdk.run import inputs

        if self.id == os.environ.get("RUNYARD_RUN_ID"):
            return inputs.datasets_of_this_script()
        return inputs.datasets_of_run(self._view, self.experiment.workspace)

    def get_secret(self, name: str) -> str:
        """Return a secret that this run uses, by its name or by the name of its environment variable.

        Raises:
            UserErrorException: The run does not use the secret.
        """
        from runyard.sdk.core.secrets import secret_of_this_run

        return secret_of_this_run(name)

    def get_secrets(self, secrets: Any) -> dict[str, str]:
        """Return several secrets by name."""
        return {name: self.get_secret(name) for name in secrets}

    def wait_for_completion(
        self, show_output: bool = False, wait_post_processing: bool = False, raise_on_error: bool = True
    ) -> dict[str, Any]:
        """Wait until the run has ended.

        Args:
            show_output: Print the logs while they are written.
            wait_post_processing: Has no effect; the files are complete when the run has ended.
            raise_on_error: Raise an exception if the run failed.

        Returns:
            The details of the run, as :meth:`get_details` returns them.

        Raises:
            ActivityFailedException: The run failed. A canceled run does not raise.
        """
        from runyard.sdk.run import waiting
        from runyard.sdk.run.details import details_of

        self._view, files = waiting.wait(self._connection, self._view, show_output)
        details = details_of(self._view, self.get_file_names() if files is None else files, self.experiment.workspace)
        if raise_on_error:
            waiting.raise_if_failed(details)
        return details

    def start(self) -> None:
        """Do nothing: a run is started, or waits in a queue, as soon as it exists."""

    def cancel(self) -> None:
        """Cancel the run. All of its processes are stopped."""
        self._view = self._connection.post(f"/api/runs/{self.id}/cancel")
        if self._session is not None:
            self._session.upload_outputs()
            self._end_session()

    def complete(self, _set_status: bool = True) -> None:
        """End an interactive run. In a submitted script, only flush its metrics: the run ends with the script."""
        self.flush()
        if self._session is not None:
            self._session.upload_outputs()
        if not self._inside:
            self._view = self._connection.post(f"/api/runs/{self.id}/complete")
            self._end_session()

    def fail(self, error_details: Any = None, error_code: str | None = None, _set_status: bool = True) -> None:
        """Mark the run as failed.

        Args:
            error_details: The message of the failure, or an exception.
            error_code: A short code, shown before the message.
        """
        self.flush()
        body = {"message": "" if error_details is None else str(error_details), "code": error_code or ""}
        if self._session is not None:
            self._session.upload_outputs()
        self._view = self._connection.post(f"/api/runs/{self.id}/fail", body)
        self._end_session()

    def flush(self, timeout_seconds: float = 300) -> None:
        """Do nothing: metrics are not buffered in this process."""

    def clean(self) -> Any:
        """Remove nothing: temporary files of a run are removed when it ends."""
        return []

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if kind is None:
            self.complete()
        else:
            self.fail(error_details=f"{kind.__name__}: {value}")

    def get_metrics(
        self, name: str | None = None, recursive: bool = False, run_type: str | None = None, populate: bool = False
    ) -> dict[str, Any]:
        """Return the metrics of the run.

        Args:
            name: Return only this metric.
            recursive: Also return the metrics of all child runs, as a dict by run id.
            run_type: Has no effect.
            populate: Has no effect.

        Returns:
            A dict by metric name: the value of a metric that was logged once, else the list of its values.
        """
        if run_type is not None:
            from runyard.sdk.azureml import no_effect

            no_effect.warn_ignored(
                "Run.get_metrics", "run_type", run_type, "the metrics of all child runs are returned"
            )
        query = {"run_ids": [self.id], "name": name, "recursive": recursive}
        metrics: dict[str, dict[str, Any]] = self._connection.post("/api/metrics", query)
        return metrics if recursive else metrics.get(self.id, {})

    def __repr__(self) -> str:
        return (
            f"Run(Experiment: {self.experiment.name},\nId: {self.id},\nType: {self.type},\nStatus: {self.get_status()})"
        )

    def _repr_html_(self) -> str:
        from runyard.sdk.core.display import run_html

        return run_html(self._refresh(), self._connection.get(f"/api/runs/{self.id}/summary")["metrics"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def _end_session(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None
