"""HyperDriveRun: a sweep, looked at from outside."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Optional

from runyard.errors import HyperDriveException
from runyard.sdk.core import validation
from runyard.sdk.run.run import Run

if TYPE_CHECKING:
    from runyard.sdk.core.experiment import Experiment
    from runyard.sdk.hyperdrive.runconfig import HyperDriveConfig


class HyperDriveRun(Run):
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
        if self.type != self.RUN_TYPE:
            raise HyperDriveException(f"run {run_id} is no sweep", hint="Run(experiment, run_id) opens it")
        self._hyperdrive_config = hyperdrive_config

    @property
    def hyperdrive_config(self) -> Optional[HyperDriveConfig]:
        """As it was submitted; None for a sweep that was opened again."""
        return self._hyperdrive_config

    def fail(self, error_details: Any = None, error_code: Optional[str] = None, _set_status: bool = True) -> None:
        """Refused: a sweep ends as its children do."""
        raise HyperDriveException(f"sweep {self.id} cannot be marked as failed", hint="cancel() ends it")

    def get_best_run_by_primary_metric(
        self, include_failed: bool = True, include_canceled: bool = True, include_resume_from_runs: bool = True
    ) -> Optional[Run]:
        """The child with the best value of all that it logged; None when none has logged any."""
        left_out = {"Failed"} if not include_failed else set()
        left_out |= {"Canceled"} if not include_canceled else set()
        best: Optional[tuple[float, str]] = None
        for sweep in (self, *(self._earlier() if include_resume_from_runs else ())):
            view = sweep._sweep()
            sign = 1.0 if view["goal"] == "maximize" else -1.0
            for child in view["children"]:
                if child["best"] is None or child["status"] in left_out:
                    continue
                score = sign * child["best"]
                if best is None or score > best[0]:
                    best = (score, child["run_id"])
        return Run(self.experiment, best[1]) if best else None

    def get_children_sorted_by_primary_metric(
        self, top: int = 0, reverse: bool = False, discard_no_metric: bool = False
    ) -> list[dict[str, Any]]:
        """The best first (``reverse``: last); those that logged nothing at the end. ``top`` of 0 means all."""
        if isinstance(top, bool) or not isinstance(top, int):
            raise validation.wrong("top", top, "a whole number, 0 for all children", error=HyperDriveException)
        view = self._sweep()
        sign = 1.0 if view["goal"] == "maximize" else -1.0
        scored = [child for child in view["children"] if child["best"] is not None]
        scored.sort(key=lambda child: sign * child["best"], reverse=not reverse)
        others = [] if discard_no_metric else [child for child in view["children"] if child["best"] is None]
        listed = [*scored, *others]
        return [
            {
                "run_id": child["run_id"],
                "hyperparameters": child["parameters"],
                "best_primary_metric": child["best"],
                "status": child["status"],
            }
            for child in (listed[:top] if top > 0 else listed)
        ]

    def get_hyperparameters(self) -> dict[str, dict[str, Any]]:
        """What each child was given, by its run id."""
        return {child["run_id"]: child["parameters"] for child in self._sweep()["children"]}

    def get_metrics(
        self,
        name: Optional[str] = None,
        recursive: bool = False,
        run_type: Optional[str] = None,
        populate: bool = False,
    ) -> dict[str, Any]:
        """The metrics of every child, by its run id."""
        query = {"run_ids": [self.id], "name": name, "recursive": True}
        found: dict[str, Any] = self._connection.post("/api/metrics", query)
        found.pop(self.id, None)
        return found

    def get_parameter_importance(self) -> dict[str, float]:
        """How much of the metric's spread each parameter explains, the greatest first; empty when it cannot be said."""
        found = self._connection.get(f"/api/sweeps/{self.id}/importance")["parameters"]
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))

    def get_diagnostics(self) -> dict[str, Any]:
        """What is known of the sweep itself: how it stands, and of each child that failed why."""
        failed = {child.id: child.get_details().get("error") for child in self.get_children(status="Failed")}
        return {"run_id": self.id, "status": self.get_status(), "warnings": self._view["warnings"], "failed": failed}

    def rerun_failed(self) -> HyperDriveRun:
        """A new sweep of exactly those children that failed, with the values that they had."""
        failed = [child for child in self._sweep()["children"] if child["status"] == "Failed"]
        if not failed:
            raise HyperDriveException(f"no child of sweep {self.id} has failed", hint="there is nothing to run again")
        body = {"run_ids": [child["run_id"] for child in failed], "run_id": f"HD_{uuid.uuid4()}"}
        view = self._connection.post(f"/api/sweeps/{self.id}/rerun", body)
        return HyperDriveRun(self.experiment, view["run_id"], _view=view)

    def _sweep(self) -> dict[str, Any]:
        found: dict[str, Any] = self._connection.get(f"/api/sweeps/{self.id}")
        return found

    def _earlier(self) -> list[HyperDriveRun]:
        return [HyperDriveRun(self.experiment, sweep_id) for sweep_id in self._sweep()["resume_from"]]
