"""Records the trials of an Optuna study that runs inside a run, as the children of a sweep.

Optuna samples and prunes in the script's own processes. They report the current state of each trial, and repeat it when
they received no response; the yard stores the difference to what it has.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from runyard import clock
from runyard.errors import RunNotFound, UserErrorException
from runyard.lifecycle import events as on
from runyard.lifecycle.state import End, EndReason, Life, RunState
from runyard.orchestrator.conductor import Conductor
from runyard.spec.sweep import OPTUNA, STUDY_PROPERTY, Sampling, Study, SweepSpec, Trial
from runyard.store.runs import SWEEP, RunRecord
from runyard.store.sweeps import SweepStore
from runyard.sweeps import study_report
from runyard.tracking.external_points import Point, add_points
from runyard.tracking.metrics import read_points
from runyard.wire.points import NO_STEP
from runyard.wire.sweeps import StudyReport, StudyTrial

_STATES = {
    "running": RunState.RUNNING,
    "complete": RunState.COMPLETED,
    "pruned": RunState.CANCELED,
    "failed": RunState.FAILED,
}


class StudyRecorder:
    def __init__(self, conductor: Conductor, store: SweepStore) -> None:
        self._conductor, self._store = conductor, store
        self._lock = threading.Lock()  # several processes of a run report at the same time

    def record(self, host_id: str, report: StudyReport) -> str:
        """Store the trials and return the id of the sweep that has them.

        The first study of a run makes the run itself a sweep; a further study gets a child run.
        """
        study_report.check(report)
        with self._lock:
            host = self._conductor.components.runs.load(host_id)
            sweep_id, spec = self._sweep_of(host, report)
            sweeps = [sweep_id, *(other for other in self._store.of_study(report.key) if other != sweep_id)]
            numbers = [trial_report.number for trial_report in report.trials]
            owners = {
                trial.number: (owner, trial)
                for owner in reversed(sweeps)
                for trial in self._store.trials(owner, numbers)
            }
            for trial_report in report.trials:
                owner, trial = owners.get(trial_report.number, (sweep_id, None))
                self._record_trial(owner, spec, trial, trial_report)
            assert spec.study is not None
            # a report that was sent before the run ended may arrive after the driver has ended its trials
            RecordedStudy(self._conductor, self._store, sweep_id, spec.study).advance()
        self._conductor.notifier.notify(sweep_id)
        return sweep_id

    def _sweep_of(self, host: RunRecord, report: StudyReport) -> tuple[str, SweepSpec]:
        if host.type == SWEEP:
            raise UserErrorException(
                f"{host.run_id} is a sweep of the yard, and cannot have the trials of a study",
                hint="run the study in a submitted or interactive run",
            )
        child_id = f"{host.run_id}_{report.key[:12]}"
        for sweep_id in (host.run_id, child_id):
            spec = self._store.load(sweep_id)
            if spec is None:
                return sweep_id, self._add_sweep(sweep_id, host, report)
            if spec.study is not None and spec.study.key == report.key:
                return sweep_id, spec
        raise UserErrorException(f"run {child_id} has the trials of another study")

    def _add_sweep(self, sweep_id: str, host: RunRecord, report: StudyReport) -> SweepSpec:
        objectives = dict(zip(report.metrics, report.directions))
        spec = SweepSpec(
            sampling=Sampling(OPTUNA, {}),
            primary_metric=report.metrics[0],
            goal=report.directions[0],
            max_total_runs=0,
            max_concurrent_runs=0,
            child={},
            study=Study(report.key, report.name, host.run_id, objectives),
        )
        if sweep_id != host.run_id:
            record = replace(_child(host, sweep_id, report.name), created_at=clock.now())
            self._conductor.admit(record, on.Opened(), {}, {})
        self._store.add(sweep_id, spec)
        self._conductor.components.runs.add_properties(
            sweep_id,
            {STUDY_PROPERTY: report.name, "primary_metric_name": spec.primary_metric, "primary_metric_goal": spec.goal},
        )
        return spec

    def _record_trial(self, sweep_id: str, spec: SweepSpec, trial: Trial | None, trial_report: StudyTrial) -> None:
        if trial is not None and RunState(trial.state).is_terminal:
            return
        state = _STATES[trial_report.state]
        run_id = f"{sweep_id}_{trial_report.number}"
        stopped = f"pruned {study_report.pruned_at(trial_report)}" if state is RunState.CANCELED else ""
        components = self._conductor.components
        if not components.runs.has(run_id):
            record = _child(components.runs.load(sweep_id), run_id, f"trial {trial_report.number}")
            record = replace(record, created_at=trial_report.started_at or clock.now())
            tags = study_report.tags(trial_report)
            if state.is_terminal:  # recorded by Optuna before the study was continued here: it has its own times
                components.runs.insert(_ended(record, _end(state, trial_report, stopped), trial_report), tags, {})
            else:
                self._conductor.admit(record, on.Opened(), tags, {})
        elif trial_report.attributes:
            components.runs.set_tags(run_id, study_report.tags(trial_report))
        parameters = study_report.parameters(trial_report)
        if trial is None or trial.parameters != parameters:
            components.runs.set_params(run_id, {name: str(value) for name, value in parameters.items()})
        assert spec.study is not None
        reports = self._add_points(run_id, list(spec.study.objectives), trial_report)
        value = trial_report.values[0] if state is RunState.COMPLETED else None
        best = value if value is not None and math.isfinite(value) else None
        if state.is_terminal and not components.runs.load(run_id).life.state.is_terminal:
            # before the trial is stored as ended: if the yard is killed in between, the report is sent again
            self._conductor.post(run_id, _end_event(_end(state, trial_report, stopped)))
        else:
            self._conductor.notifier.notify(run_id)
        self._store.put_trial(
            sweep_id, Trial(trial_report.number, run_id, parameters, state.value, best, reports, stopped=stopped)
        )

    def _add_points(self, run_id: str, metrics: Sequence[str], trial_report: StudyTrial) -> int:
        """Add the values that are not stored yet; return the number of values of the first objective.

        The value of a trial follows its intermediate values, unless it is the last of them.
        """
        database = self._conductor.components.database
        series = read_points(database, run_id, metrics[0])
        steps = set(series.steps.tolist())
        time = trial_report.ended_at or clock.now()
        points: dict[str, list[Point]] = {
            metrics[0]: [
                Point(step, time, value)
                for step, value in zip(trial_report.steps, trial_report.intermediate)
                if step not in steps
            ]
        }
        last = trial_report.steps[-1] if trial_report.steps else NO_STEP
        for index, (name, value) in enumerate(zip(metrics, trial_report.values)):
            step = NO_STEP if index else last
            if index == 0 and trial_report.intermediate and trial_report.intermediate[-1] == value:
                continue
            points_of_name = series if index == 0 else read_points(database, run_id, name)
            if not bool(np.any((points_of_name.steps == step) & (points_of_name.values == value))):
                later = max([time, *series.times.tolist()]) + 0.001  # it is the last one, also of equal steps
                points.setdefault(name, []).append(Point(step, later, value))
        add_points(database, run_id, points)
        return len(series.values) + len(points[metrics[0]])


class RecordedStudy:
    """A study as the driver sees it: nothing is proposed, and open trials end with the run that runs them."""

    watches_reports = may_propose = False

    def __init__(self, conductor: Conductor, store: SweepStore, sweep_id: str, study: Study) -> None:
        self._conductor, self._store, self.sweep_id, self.study = conductor, store, sweep_id, study

    def advance(self) -> bool:
        """Perform one step; True when the run of the study has ended and all of its trials too."""
        try:
            host = self._conductor.components.runs.load(self.study.host)
        except RunNotFound:  # deleted
            return True
        if not host.life.state.is_terminal:
            return False
        for trial in self._store.trials(self.sweep_id):
            if not RunState(trial.state).is_terminal:
                message = f"run {host.run_id} ended before the trial"
                record = self._conductor.post(trial.run_id, on.MarkedFailed(End(EndReason.PROCESS_LOST, message)))
                state = record.life.end.state if record.life.end else RunState.FAILED
                self._store.put_trial(self.sweep_id, replace(trial, state=state.value))
        if self.sweep_id != host.run_id:
            self._conductor.post(self.sweep_id, _end_event(host.life.end or End(EndReason.SUCCEEDED)))
        return True


def _child(parent: RunRecord, run_id: str, name: str) -> RunRecord:
    return RunRecord(
        run_id=run_id,
        experiment=parent.experiment,
        life=Life(managed=False),
        created_at=clock.now(),
        parent_id=parent.run_id,
        root_id=parent.root_id,
        name=f"{parent.name}>{name}" if parent.name else name,
        target=parent.target,
        submitted_by=parent.submitted_by,
    )


def _ended(record: RunRecord, end: End, trial_report: StudyTrial) -> RunRecord:
    ended_at = trial_report.ended_at or record.created_at
    return replace(
        record,
        life=Life(end.state, end, managed=False),
        timeline={RunState.RUNNING.value: record.created_at, end.state.value: ended_at},
        started_at=record.created_at,
        ended_at=ended_at,
    )


def _end(state: RunState, trial_report: StudyTrial, stopped: str) -> End:
    if state is RunState.COMPLETED:
        return End(EndReason.SUCCEEDED)
    if state is RunState.CANCELED:
        return End(EndReason.CANCELED, stopped)
    return End(EndReason.MARKED_FAILED, trial_report.message or "the trial failed; the log of its run has the error")


def _end_event(end: End) -> on.Event:
    if end.state is RunState.COMPLETED:
        return on.MarkedComplete()
    return on.CancelRequested(end.message) if end.state is RunState.CANCELED else on.MarkedFailed(end)
