"""HyperDriveRun: the run of a sweep."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Optional

from runyard.errors import HyperDriveException
from runyard.sdk.core import validation
from runyard.sdk.run.run import Run
from runyard.spec.sweep import STUDY_PROPERTY

if TYPE_CHECKING:
    from runyard.sdk.core.experiment import Experiment
    from runyard.sdk.hyperdrive.runconfig import HyperDriveConfig


class HyperDriveRun(Run):
    """The run of a sweep, returned by ``experiment.submit(HyperDriveConfig(...))``.

    ``HyperDriveRun(experiment, run_id)`` also opens a run whose script runs an Optuna study: its trials are children.

    Args:
        experiment: The experiment of the sweep.
        run_id: Id of the sweep, such as ``HD_<uuid>``.
        hyperdrive_config: The configuration it was submitted with.

    Raises:
        HyperDriveException: The run is not a sweep.
    """

    RUN_TYPE = "hyperdrive"
    HYPER_DRIVE_RUN_USER_AGENT = "sdk_run_hyperdrive"

    def __init__(
        self,
        experiment: Experiment,
        run_id: str,
        hyperdrive_config: Optional[HyperDriveConfig] = None,
        *,
        _view: Optional[dict[str, Any]] = None,
        **_: Any,
    ) -> None:
        super().__init__(experiment, run_id, _view=_view)
        if self.type != self.RUN_TYPE and STUDY_PROPERTY not in self.properties:
            raise HyperDriveException(f"run {run_id} is not a sweep", hint="Run(experiment, run_id) opens it")
        self._hyperdrive_config = hyperdrive_config

    @property
    def hyperdrive_config(self) -> Optional[HyperDriveConfig]:
        """The configuration of the submission; None for a sweep that was opened by its id."""
        return self._hyperdrive_config

    def fail(self, error_details: Any = None, error_code: Optional[str] = None, _set_status: bool = True) -> None:
        """Raise HyperDriveException: a sweep ends with its children."""
        raise HyperDriveException(f"sweep {self.id} cannot be marked as failed", hint="cancel() ends it")

    def get_best_run_by_primary_metric(
        self, include_failed: bool = True, include_canceled: bool = True, include_resume_from_runs: bool = True
    ) -> Optional[Run]:
        """Return the child with the best value of the primary metric; None if no child has logged one.

        Args:
            include_failed: Consider failed children.
            include_canceled: Consider canceled children.
            include_resume_from_runs: Consider the children of the sweeps in ``resume_from``.
        """
        excluded = {"Failed"} if not include_failed else set()
        excluded |= {"Canceled"} if not include_canceled else set()
        scored: list[tuple[float, str]] = []
        for sweep in (self, *(self._resumed_sweeps() if include_resume_from_runs else ())):
            view = sweep._sweep()
            sign = 1.0 if view["goal"] == "maximize" else -1.0
            children = [c for c in view["children"] if c["best"] is not None and c["status"] not in excluded]
            scored += [(sign * child["best"], child["run_id"]) for child in children]
        return Run(self.experiment, max(scored, key=lambda pair: pair[0])[1]) if scored else None

    def get_children_sorted_by_primary_metric(
        self, top: int = 0, reverse: bool = False, discard_no_metric: bool = False
    ) -> list[dict[str, Any]]:
        """Return id, hyperparameters, best metric and status of the children, the best first.

        Args:
            top: Number of children; 0 for all.
            reverse: The best last.
            discard_no_metric: Leave out children that have not logged the metric, which else come last.
        """
        if isinstance(top, bool) or not isinstance(top, int):
            raise validation.invalid("top", top, "a whole number, 0 for all children", error=HyperDriveException)
        view = self._sweep()
        sign = 1.0 if view["goal"] == "maximize" else -1.0
        scored = [child for child in view["children"] if child["best"] is not None]
        scored.sort(key=lambda child: sign * child["best"], reverse=not reverse)
        unscored = [] if discard_no_metric else [child for child in view["children"] if child["best"] is None]
        children = [*scored, *unscored]
        return [
            {
                "run_id": child["run_id"],
                "hyperparameters": child["parameters"],
                "best_primary_metric": child["best"],
                "status": child["status"],
            }
            for child in (children[:top] if top > 0 else children)
        ]

    def get_hyperparameters(self) -> dict[str, dict[str, Any]]:
        """Return the hyperparameters of each child by its run id."""
        return {child["run_id"]: child["parameters"] for child in self._sweep()["children"]}

    def get_metrics(
        self,
        name: Optional[str] = None,
        recursive: bool = False,
        run_type: Optional[str] = None,
        populate: bool = False,
    ) -> dict[str, Any]:
        """Return the metrics of each child by its run id."""
        query = {"run_ids": [self.id], "name": name, "recursive": True}
        metrics: dict[str, Any] = self._connection.post("/api/metrics", query)
        metrics.pop(self.id, None)
        return metrics

    def get_parameter_importance(self) -> dict[str, float]:
        """Return the share of the metric's variance that each parameter explains, the greatest first.

        Returns:
            A dict by parameter; empty if there are too few values.
        """
        importance = self._connection.get(f"/api/sweeps/{self.id}/importance")["parameters"]
        return dict(sorted(importance.items(), key=lambda pair: -pair[1]))

    def get_diagnostics(self) -> dict[str, Any]:
        """Return status and warnings of the sweep, and the error of each failed child."""
        failed = {child.id: child.get_details().get("error") for child in self.get_children(status="Failed")}
        return {"run_id": self.id, "status": self.get_status(), "warnings": self._view["warnings"], "failed": failed}

    def rerun_failed(self) -> HyperDriveRun:
        """Submit a new sweep with the failed children and their hyperparameters.

        Raises:
            HyperDriveException: No child has failed.
        """
        failed = [child for child in self._sweep()["children"] if child["status"] == "Failed"]
        if not failed:
            raise HyperDriveException(f"no child of sweep {self.id} has failed", hint="nothing to run again")
        body = {"run_ids": [child["run_id"] for child in failed], "run_id": f"HD_{uuid.uuid4()}"}
        view = self._connection.post(f"/api/sweeps/{self.id}/rerun", body)
        return HyperDriveRun(self.experiment, view["run_id"], _view=view)

    def _sweep(self) -> dict[str, Any]:
        view: dict[str, Any] = self._connection.get(f"/api/sweeps/{self.id}")
        return view

    def _resumed_sweeps(self) -> list[HyperDriveRun]:
        return [HyperDriveRun(self.experiment, sweep_id) for sweep_id in self._sweep()["resume_from"]]
