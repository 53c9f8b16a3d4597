"""Sweeps: submit, get, list, and the importance of parameters."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter, Response

from runyard.errors import RunNotFound
from runyard.orchestrator.conductor import Conductor
from runyard.server.responses import json_response, run_view
from runyard.spec.json import to_json
from runyard.spec.sweep import SweepSpec, Trial
from runyard.store.sweeps import SweepStore
from runyard.sweeps.driver import SweepDriver
from runyard.sweeps.importance import importance
from runyard.sweeps.study import StudyRecorder
from runyard.sweeps.submit import rerun_children, submit_sweep
from runyard.wire.runs import RunView
from runyard.wire.sweeps import (
    Importance,
    RerunChildren,
    StudyRecorded,
    StudyReport,
    SubmitSweep,
    SweepView,
    TrialView,
)


def routes(conductor: Conductor, driver: SweepDriver) -> APIRouter:
    router = APIRouter(tags=["sweeps"])
    store = SweepStore(conductor.components.database)
    recorder = StudyRecorder(conductor, store)

    @router.post("/sweeps", response_model=RunView)
    def submit(request: SubmitSweep) -> Response:
        """Submit a sweep. The sweep is a run of type `hyperdrive`; its trials are child runs."""
        record = submit_sweep(conductor, store, request)
        driver.add(record.run_id)
        return json_response(run_view(conductor, record))

    @router.post("/sweeps/{sweep_id}/rerun", response_model=RunView)
    def rerun(sweep_id: str, request: RerunChildren) -> Response:
        """Submit a new sweep that repeats exactly these children with the same parameter values."""
        record = rerun_children(conductor, store, sweep_id, request)
        driver.add(record.run_id)
        return json_response(run_view(conductor, record))

    @router.post("/sweeps/{run_id}/study", response_model=StudyRecorded)
    def record_study(run_id: str, report: StudyReport) -> Response:
        """Record trials of an Optuna study that the script of a run runs. Idempotent."""
        sweep_id = recorder.record(run_id, report)
        driver.add(sweep_id)
        return json_response(StudyRecorded(sweep_id))

    @router.get("/sweeps")
    def listing() -> Response:
        """List the sweeps with the number of their children, newest first."""
        return json_response(store.summaries())

    @router.get("/sweeps/{sweep_id}", response_model=SweepView)
    def sweep(sweep_id: str) -> Response:
        spec = _load_spec(store, sweep_id)
        if spec.study is not None:  # other runs that continued the study
            others = tuple(other for other in store.of_study(spec.study.key) if other != sweep_id)
            spec = replace(spec, resume_from=others)
        return json_response(_view(conductor, sweep_id, spec, store.trials(sweep_id)))

    @router.get("/sweeps/{sweep_id}/importance", response_model=Importance)
    def importances(sweep_id: str) -> Response:
        """Return the share of the metric's variance that each parameter explains."""
        return json_response(importance(_load_spec(store, sweep_id), store.trials(sweep_id)))

    return router


def _load_spec(store: SweepStore, sweep_id: str) -> SweepSpec:
    spec = store.load(sweep_id)
    if spec is None:
        raise RunNotFound(f"no sweep {sweep_id!r} in this yard", hint="`runyard runs` lists runs and sweeps")
    return spec


def _view(conductor: Conductor, sweep_id: str, spec: SweepSpec, trials: list[Trial]) -> SweepView:
    record = conductor.components.runs.load(sweep_id)
    states, errors = conductor.components.runs.child_states(sweep_id), conductor.components.runs.child_errors(sweep_id)
    not_started = ("NotStarted", None)
    children = [
        TrialView(
            trial.number,
            trial.run_id,
            trial.parameters,
            states.get(trial.run_id, not_started)[0],
            trial.best,
            trial.reports,
            trial.stopped,
            trial.resumes,
            errors.get(trial.run_id, ""),
            states.get(trial.run_id, not_started)[1],
        )
        for trial in trials
    ]
    scored = [child for child in children if child.best is not None]
    best = max(scored, key=lambda child: spec.sign * (child.best or 0.0)).number if scored else None
    return SweepView(
        sweep_id=sweep_id,
        status=record.life.state.value,
        doing=conductor.activity(record)[0],
        primary_metric=spec.primary_metric,
        goal=spec.goal,
        sampling=to_json(spec.sampling),
        policy=to_json(spec.policy) if spec.policy else None,
        max_total_runs=spec.max_total_runs or len(children),
        max_concurrent_runs=spec.max_concurrent_runs,
        max_duration_minutes=spec.max_duration_minutes,
        best=best,
        children=children,
        resume_from=list(spec.resume_from),
        target=record.target,
        study=spec.study.name if spec.study else "",
    )
