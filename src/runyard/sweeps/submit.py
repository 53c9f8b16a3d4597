"""Taking a sweep in: what can be refused is refused before anything is written or started."""

from __future__ import annotations

from dataclasses import replace

from runyard import clock
from runyard.errors import HyperDriveConfigException, SnapshotException
from runyard.lifecycle import events as on
from runyard.lifecycle.state import Life
from runyard.orchestrator.conductor import Conductor
from runyard.orchestrator.submit import check_names
from runyard.spec.json import from_json, to_json
from runyard.spec.run import RunSpec
from runyard.spec.space import SpaceError, check_space
from runyard.spec.sweep import (
    BAYESIAN,
    GRID,
    MAXIMIZE,
    MINIMIZE,
    POPULATION,
    RANDOM,
    SOBOL,
    Policy,
    Population,
    Resumed,
    SweepSpec,
)
from runyard.store.runs import SWEEP, RunRecord
from runyard.store.sweeps import SweepStore
from runyard.sweeps import policies
from runyard.wire.sweeps import RerunChildren, SubmitSweep


def submit_sweep(conductor: Conductor, store: SweepStore, request: SubmitSweep) -> RunRecord:
    rooms = conductor.rooms
    check_names(request.run_id, request.experiment)
    spec = from_json(SweepSpec, request.spec)
    _check(spec)
    child = from_json(RunSpec, spec.child)
    target = rooms.targets.get(child.target)
    if not rooms.snapshots.has(request.snapshot_id):
        raise SnapshotException(f"snapshot {request.snapshot_id} is not here yet", hint="offer it first")
    _, warnings = target.queue.fit(child.resources)
    record = RunRecord(
        run_id=request.run_id,
        experiment=request.experiment,
        life=Life(managed=False, leads=True),
        created_at=clock.now(),
        root_id=request.run_id,
        type=SWEEP,
        target=child.target,
        snapshot_id=request.snapshot_id,
        warnings=(*request.warnings, *warnings),
        submitted_by=request.submitted_by,
    )
    rooms.folder(record.run_id).logs.mkdir(parents=True, exist_ok=True)
    store.add(request.run_id, spec)
    properties = {
        "ContentSnapshotId": request.snapshot_id,
        "primary_metric_name": spec.primary_metric,
        "primary_metric_goal": spec.goal,
    }
    return conductor.admit(record, on.Begun(), request.tags, dict(properties))


def rerun_children(conductor: Conductor, store: SweepStore, sweep_id: str, request: RerunChildren) -> RunRecord:
    spec, former = store.load(sweep_id), conductor.rooms.runs.load(sweep_id)
    children = {trial.run_id: trial for trial in store.trials(sweep_id)}
    unknown = [run_id for run_id in request.run_ids if run_id not in children]
    if spec is None or unknown or not request.run_ids:
        named = ", ".join(unknown) or "nothing"
        raise HyperDriveConfigException(f"{named} cannot be run again: it is no child of {sweep_id}")
    assert former.snapshot_id is not None
    again = replace(
        spec,
        max_total_runs=len(request.run_ids),
        max_concurrent_runs=min(spec.max_concurrent_runs, len(request.run_ids)),
        resumed=tuple(Resumed(children[run_id].resumes, children[run_id].parameters) for run_id in request.run_ids),
    )
    body = SubmitSweep(
        run_id=request.run_id,
        experiment=former.experiment,
        spec=to_json(again),
        snapshot_id=former.snapshot_id,
        submitted_by=former.submitted_by or "",
    )
    return submit_sweep(conductor, store, body)


def _check(spec: SweepSpec) -> None:
    """The SDK has said the same earlier; others may ask too."""
    try:
        check_space(spec.sampling.space, spec.sampling.name)
    except SpaceError as error:
        raise HyperDriveConfigException(str(error), hint=error.hint) from None
    if spec.goal not in (MAXIMIZE, MINIMIZE):
        raise HyperDriveConfigException(f"the goal is {MAXIMIZE!r} or {MINIMIZE!r}, not {spec.goal!r}")
    if not spec.primary_metric:
        raise HyperDriveConfigException("a sweep needs the name of its primary metric")
    if spec.max_total_runs < 1 or spec.max_concurrent_runs < 1:
        raise HyperDriveConfigException(
            f"max_total_runs and max_concurrent_runs must be at least 1, "
            f"not {spec.max_total_runs} and {spec.max_concurrent_runs}",
        )
    if spec.sampling.name not in (BAYESIAN, GRID, POPULATION, RANDOM, SOBOL):
        raise HyperDriveConfigException(f"no sampling is called {spec.sampling.name!r}")
    if spec.sampling.name == POPULATION:
        _check_population(spec.sampling.population, spec.policy)
    if spec.policy is not None:
        _check_policy(spec.policy)


def _check_population(population: Population | None, policy: Policy | None) -> None:
    if population is None or population.size < 2:
        raise HyperDriveConfigException("a population has at least 2 members")
    if not 0 < population.replaced <= 0.5 or not 0 <= population.resampled <= 1:
        raise HyperDriveConfigException(
            f"of a population at most the weaker half is replaced, not {population.replaced!r}, "
            f"and resampled is a probability, not {population.resampled!r}"
        )
    if policy is not None:
        raise HyperDriveConfigException(
            f"a population takes no early termination policy, and {policy.name} is one",
            hint="its weakest members are replaced after each generation",
        )


def _check_policy(policy: Policy) -> None:
    """The thread that judges by it drives all sweeps: a rung that never grows would hold up every one."""
    if policy.name not in policies.NAMES:
        raise HyperDriveConfigException(
            f"no policy is called {policy.name!r}", hint=f"policies: {', '.join(policies.NAMES)}"
        )
    if policy.evaluation_interval < 1:
        raise HyperDriveConfigException(f"evaluation_interval must be at least 1, not {policy.evaluation_interval}")
    if policy.reduction_factor < 2:
        raise HyperDriveConfigException(f"reduction_factor must be at least 2, not {policy.reduction_factor}")
    if policy.name == "Bandit" and (policy.slack_factor is None) == (policy.slack_amount is None):
        raise HyperDriveConfigException("Bandit takes exactly one of slack_factor and slack_amount")
