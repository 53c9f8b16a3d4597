"""The run that this very script is, known from the environment that its agent gave it."""

from __future__ import annotations

import os

from runyard.sdk.run.metric_logging import MetricLogging
from runyard.sdk.run.run import Run

TYPE_CHECKING = False  # typing itself takes longer to import than this module
if TYPE_CHECKING:
    from typing import Any, Optional

    from runyard.client.connection import Connection
    from runyard.sdk.core.experiment import Experiment


class RunOfThisScript(Run):
    """Made from the environment alone: logging needs no yard, so a script never waits for one to log."""

    def __init__(self, run_id: str) -> None:
        self.id = run_id
        self._inside = True
        self._interactive = None
        self._of: Optional[Experiment] = None
        self._fetched: dict[str, Any] | None = None
        MetricLogging.__init__(self, os.environ["RUNYARD_RUN_FOLDER"], rank=int(os.environ.get("RUNYARD_RANK", "0")))

    # Both below are made when they are asked for: a script that only logs has nobody to connect to.

    @property
    def experiment(self) -> Experiment:  # type: ignore[override]
        if self._of is None:
            from runyard.sdk.core.experiment import Experiment
            from runyard.sdk.core.workspace import Workspace

            workspace = Workspace(
                os.environ.get("AZUREML_ARM_SUBSCRIPTION") or "local",
                os.environ.get("AZUREML_ARM_RESOURCEGROUP") or "local",
                os.environ.get("AZUREML_ARM_WORKSPACE_NAME") or "runyard",
            )
            self._of = Experiment(workspace, os.environ["AZUREML_ARM_PROJECT_NAME"])
        return self._of

    @property
    def _connection(self) -> Connection:  # type: ignore[override]
        return self.experiment.workspace.connection

    @property
    def _view(self) -> dict[str, Any]:
        if self._fetched is None:
            self._fetched = dict(self._connection.get(f"/api/runs/{self.id}"))
        return self._fetched

    @_view.setter
    def _view(self, view: dict[str, Any]) -> None:
        self._fetched = view

    def cancel(self) -> None:
        """A script does not cancel itself: it ends."""

    def __repr__(self) -> str:
        return super().__repr__()
