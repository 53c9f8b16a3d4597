"""An Optuna storage that shows a study as a sweep in the yard."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Optional, Union

import optuna
from optuna.storages import BaseStorage
from optuna.storages._heartbeat import BaseHeartbeat
from optuna.trial import FrozenTrial, TrialState

from runyard.integrations import logged_run, study_reports

if TYPE_CHECKING:
    from runyard.sdk.run.run import Run

_KEY = "runyard:study"  # the attribute of a study that identifies it in all runs that continue it
_METRIC_NAMES = "study:metric_names"  # set by Study.set_metric_names
_STATES = {
    TrialState.RUNNING: "running",
    TrialState.COMPLETE: "complete",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
}


def _forward(name: str) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self._backend, name)(*args, **kwargs)

    call.__name__ = name
    return call


# All methods of the installed version of Optuna; those of the heartbeat only if the wrapped storage has them.
_METHODS = {
    name: _forward(name)
    for base in (BaseStorage, BaseHeartbeat)
    for name in dir(base)
    if callable(getattr(base, name)) and (not name.startswith("_") or name == "_get_stale_trial_ids")
}
_Forwarding: Any = type("_Forwarding", (BaseStorage, BaseHeartbeat), _METHODS)


class RunyardStorage(_Forwarding):  # type: ignore[misc]  # a class that is made for the installed Optuna
    """Wraps a storage of Optuna, and records each trial as a child run with parameters, values and state.

    In a submitted run, the run itself becomes the sweep. Outside of a run, an interactive run is started, which ends
    with the process. All processes of a run may work on the same study. The yard only records: sampling, pruning and
    the state of the study stay with Optuna and the wrapped storage, also while the yard is not running.

    Example::

        study = optuna.create_study(storage=RunyardStorage("sqlite:///study.db"))

    Args:
        storage: A URL, a storage of Optuna, or None for one in memory.
        experiment: Experiment of the interactive run that is started outside of a run.
    """

    def __init__(self, storage: Union[str, BaseStorage, None] = None, *, experiment: str = "optuna") -> None:
        self._backend = optuna.storages.get_storage(storage)
        self._logged_run = logged_run.LoggedRun(experiment)
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.RLock()
        self._studies: dict[int, dict[str, Any]] = {}  # id -> the fields of a report that are the same for all trials
        self._trials: dict[int, tuple[int, study_reports.TrialState]] = {}  # open trials by id, with their study
        self._reporter = study_reports.StudyReporter(self._send)

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            self._logged_run.open("study")  # workers that receive a copy report to the run of this process
        return {"_backend": self._backend, "_logged_run": self._logged_run}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    @property
    def run(self) -> Optional[Run]:
        """The run that the trials are recorded in; None before the first trial."""
        return self._logged_run.run

    def create_new_trial(self, study_id: int, template_trial: Optional[FrozenTrial] = None) -> int:
        self._join(study_id)
        trial_id: int = self._backend.create_new_trial(study_id, template_trial)
        if template_trial is None or template_trial.state is not TrialState.WAITING:
            self._track(study_id, trial_id)
        return trial_id

    def set_trial_param(self, trial_id: int, param_name: str, param_value_internal: float, distribution: Any) -> None:
        self._backend.set_trial_param(trial_id, param_name, param_value_internal, distribution)
        value = distribution.to_external_repr(param_value_internal)
        self._update(trial_id, lambda trial: trial.parameters.update({param_name: value}))

    def set_trial_intermediate_value(self, trial_id: int, step: int, intermediate_value: float) -> None:
        self._backend.set_trial_intermediate_value(trial_id, step, intermediate_value)
        self._update(trial_id, lambda trial: trial.intermediate.update({int(step): float(intermediate_value)}))

    def set_trial_user_attr(self, trial_id: int, key: str, value: Any) -> None:
        self._backend.set_trial_user_attr(trial_id, key, value)
        self._update(trial_id, lambda trial: trial.attributes.update({key: _text(value)}))

    def set_trial_state_values(self, trial_id: int, state: TrialState, values: Any = None) -> bool:
        is_changed: bool = self._backend.set_trial_state_values(trial_id, state, values)
        if not is_changed:  # another worker took it first
            return is_changed
        entry = self._trials.get(trial_id)
        study_id = entry[0] if entry else self._study_of(trial_id)
        if entry is None and study_id is not None:  # enqueued before, or of a worker that was lost
            self._join(study_id)
            self._track(study_id, trial_id)
        elif entry is not None and state in _STATES:
            entry[1].state = _STATES[state]
            if values is not None:
                entry[1].values = [float(value) for value in values]
            if state.is_finished():
                entry[1].ended_at = time.time()
                self._trials.pop(trial_id, None)
            self._reporter.report(*entry)
        return is_changed

    def get_heartbeat_interval(self) -> Optional[int]:
        interval: Optional[int] = (
            self._backend.get_heartbeat_interval() if isinstance(self._backend, BaseHeartbeat) else None
        )
        return interval

    def flush(self, timeout_s: float = 30.0) -> None:
        """Wait until the yard has recorded everything, unless it does not respond."""
        self._reporter.flush(timeout_s)

    def _join(self, study_id: int) -> None:
        """Prepare the reports of a study; report what finished before, unless the yard has it."""
        with self._lock:
            if study_id in self._studies:
                return
            name = self._backend.get_study_name_from_id(study_id)
            run = self._logged_run.open(name)
            trials = self._backend.get_all_trials(study_id, deepcopy=False)
            attributes = self._backend.get_study_system_attrs(study_id)
            directions = self._backend.get_study_directions(study_id)
            key = attributes.get(_KEY)
            if key is None:
                # computed, so that workers that join at the same time get the same one
                began_at = next((trial.datetime_start for trial in trials if trial.datetime_start), None)
                origin = json.dumps([name, study_id, run.id if began_at is None else began_at.isoformat()])
                key = hashlib.sha256(origin.encode()).hexdigest()[:32]
                self._backend.set_study_system_attr(study_id, _KEY, key)
            count = len(directions)
            metrics = ["value"] if count == 1 else [f"value_{index}" for index in range(count)]
            self._studies[study_id] = {
                "key": key,
                "name": name,
                "metrics": attributes.get(_METRIC_NAMES) or metrics,
                "directions": ["maximize" if direction.name == "MAXIMIZE" else "minimize" for direction in directions],
            }
        for trial in trials:
            if trial.state.is_finished():
                self._reporter.report(study_id, _as_state(trial), wait=False)

    def _track(self, study_id: int, trial_id: int) -> None:
        trial = _as_state(self._backend.get_trial(trial_id))
        if trial.state == "running":
            self._trials[trial_id] = study_id, trial
        self._reporter.report(study_id, trial)

    def _update(self, trial_id: int, change: Callable[[study_reports.TrialState], object]) -> None:
        entry = self._trials.get(trial_id)
        if entry is not None:
            change(entry[1])
            self._reporter.report(*entry)

    def _study_of(self, trial_id: int) -> Optional[int]:
        """The study of a trial that was not created here; Optuna has no lookup for it."""
        for study in self._backend.get_all_studies():
            if any(trial._trial_id == trial_id for trial in self._backend.get_all_trials(study._study_id, False)):
                return int(study._study_id)
        return None

    def _send(self, study_id: int, trials: list[dict[str, Any]]) -> None:
        run = self._logged_run.open()
        connection = run.experiment.workspace.connection
        connection.post(f"/api/sweeps/{run.id}/study", {**self._studies[study_id], "trials": trials})


def _as_state(trial: FrozenTrial) -> study_reports.TrialState:
    return study_reports.TrialState(
        number=trial.number,
        state=_STATES.get(trial.state, "running"),
        parameters=dict(trial.params),
        values=[float(value) for value in trial.values or ()] if trial.state is TrialState.COMPLETE else [],
        intermediate={int(step): float(value) for step, value in sorted(trial.intermediate_values.items())},
        attributes={key: _text(value) for key, value in trial.user_attrs.items()},
        started_at=trial.datetime_start.timestamp() if trial.datetime_start else None,
        ended_at=trial.datetime_complete.timestamp() if trial.datetime_complete else None,
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)
