"""The run of this script, created from the environment variables that its agent set."""

from __future__ import annotations

import os

from runyard.sdk.run.metric_logging import MetricLogging
from runyard.sdk.run.run import Run

TYPE_CHECKING = False  # importing typing takes longer than importing this module
if TYPE_CHECKING:
    from typing import Any

    from runyard.client.connection import Connection
    from runyard.sdk.core.experiment import Experiment


class CurrentRun(Run):
    """Logging needs no yard. The connection and the view are created on first use, so a script never waits to log."""

    def __init__(self, run_id: str) -> None:
        self.id = run_id
        self._inside = True
        self._experiment: Experiment | None = None
        self._fetched_view: dict[str, Any] | None = None
        MetricLogging.__init__(self, os.environ["RUNYARD_RUN_FOLDER"], rank=int(os.environ.get("RUNYARD_RANK", "0")))

    @property
    def experiment(self) -> Experiment:  # type: ignore[override]
        if self._experiment is None:
            from runyard.sdk.core.experiment import Experiment
            from runyard.sdk.core.workspace import Workspace

            workspace = Workspace(
                os.environ.get("AZUREML_ARM_SUBSCRIPTION") or "local",
                os.environ.get("AZUREML_ARM_RESOURCEGROUP") or "local",
                os.environ.get("AZUREML_ARM_WORKSPACE_NAME") or "runyard",
            )
            self._experiment = Experiment(workspace, os.environ["AZUREML_ARM_PROJECT_NAME"])
        return self._experiment

    @property
    def _connection(self) -> Connection:  # type: ignore[override]
        return self.experiment.workspace.connection

    @property
    def _view(self) -> dict[str, Any]:
        if self._fetched_view is None:
            self._fetched_view = dict(self._connection.get(f"/api/runs/{self.id}"))
        return self._fetched_view

    @_view.setter
    def _view(self, view: dict[str, Any]) -> None:
        self._fetched_view = view

    def cancel(self) -> None:
        """Do nothing: a script does not cancel itself, it exits."""
