"""Submits a sweep: validates everything before anything is written or started."""

from __future__ import annotations

from dataclasses import replace

from runyard import clock
from runyard.errors import HyperDriveConfigException, SnapshotException, UserErrorException
from runyard.lifecycle import events as on
from runyard.lifecycle.state import Life
from runyard.lifecycle.warning import notes
from runyard.orchestrator.conductor import Conductor
from runyard.orchestrator.new_folder import new_folder
from runyard.orchestrator.prepare import check_environment
from runyard.orchestrator.run_secrets import protect_spec, store_values
from runyard.orchestrator.submit import check, check_names, check_script
from runyard.spec.json import from_json, to_json
from runyard.spec.run import RunSpec
from runyard.spec.space_checks import (
    MAX_COUNT,
    MAX_SEED,
    MAX_SOBOL_COUNT,
    SpaceError,
    check_space,
    validate_count,
    validate_not_negative,
)
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
    ResumedChild,
    SweepSpec,
)
from runyard.store.runs import SWEEP, RunRecord
from runyard.store.sweeps import SweepStore
from runyard.sweeps import policies
from runyard.sweeps.sampling import create_sampler
from runyard.wire.sweeps import RerunChildren, SubmitSweep


def submit_sweep(
    conductor: Conductor, store: SweepStore, request: SubmitSweep, *, origin: str | None = None
) -> RunRecord:
    """Submit a sweep. ``origin`` is the sweep whose masked specification the request contains."""
    components = conductor.components
    check_names(request.run_id, request.experiment)
    spec = from_json(SweepSpec, request.spec)
    _check(spec)
    from_json(RunSpec, spec.child)  # refuses an invalid specification
    masked_child, values = protect_spec(components, spec.child, [origin])
    spec = replace(spec, child=masked_child)
    if components.runs.has(request.run_id):
        return _resubmitted(components.runs.load(request.run_id), store.load(request.run_id), request, spec)
    child = from_json(RunSpec, spec.child)
    warnings = check(components, child)
    check_environment(components, child)
    if not components.snapshots.has(request.snapshot_id):
        raise SnapshotException(f"snapshot {request.snapshot_id} has not been uploaded", hint="upload it first")
    check_script(components, child, request.snapshot_id)
    _try_sampler(spec)
    record = RunRecord(
        run_id=request.run_id,
        experiment=request.experiment,
        life=Life(managed=False, is_sweep=True),
        created_at=clock.now(),
        root_id=request.run_id,
        type=SWEEP,
        target=child.target,
        snapshot_id=request.snapshot_id,
        warnings=notes((*request.warnings, *warnings)),
        submitted_by=request.submitted_by,
    )
    properties = {
        "ContentSnapshotId": request.snapshot_id,
        "primary_metric_name": spec.primary_metric,
        "primary_metric_goal": spec.goal,
    }
    with new_folder(components, record.run_id):
        if components.runs.has(request.run_id):  # a concurrent submission was first
            return _resubmitted(components.runs.load(request.run_id), store.load(request.run_id), request, spec)
        store.add(request.run_id, spec)
        if store.load(request.run_id) != spec:  # left by a submission that was interrupted
            raise _id_in_use(request.run_id, "a sweep with other settings was submitted under this id")
        store_values(components, record.run_id, values)
        return conductor.admit(record, on.Opened(), request.tags, dict(properties))


def rerun_children(conductor: Conductor, store: SweepStore, sweep_id: str, request: RerunChildren) -> RunRecord:
    spec, parent = store.load(sweep_id), conductor.components.runs.load(sweep_id)
    if spec is not None and spec.study is not None:
        raise HyperDriveConfigException(
            f"{sweep_id} is an Optuna study, whose trials cannot be repeated by the yard",
            hint="study.enqueue_trial(parameters) in its script repeats one",
        )
    children = {trial.run_id: trial for trial in store.trials(sweep_id)}
    unknown = [run_id for run_id in request.run_ids if run_id not in children]
    if spec is None or unknown or not request.run_ids:
        names = ", ".join(unknown) or "an empty list"
        raise HyperDriveConfigException(f"cannot rerun {names}: not a child of {sweep_id}")
    assert parent.snapshot_id is not None
    new_spec = replace(
        spec,
        max_total_runs=len(request.run_ids),
        max_concurrent_runs=min(spec.max_concurrent_runs, len(request.run_ids)),
        resumed=tuple(
            ResumedChild(children[run_id].resumes, children[run_id].parameters) for run_id in request.run_ids
        ),
    )
    body = SubmitSweep(
        run_id=request.run_id,
        experiment=parent.experiment,
        spec=to_json(new_spec),
        snapshot_id=parent.snapshot_id,
        submitted_by=parent.submitted_by or "",
    )
    return submit_sweep(conductor, store, body, origin=sweep_id)


def _resubmitted(record: RunRecord, stored: SweepSpec | None, request: SubmitSweep, spec: SweepSpec) -> RunRecord:
    """A client that received no response submits the same sweep again; a different sweep under this id is an error."""
    if record.type != SWEEP:
        raise _id_in_use(request.run_id, "it is a run, not a sweep")
    if (record.experiment, record.snapshot_id, stored) != (request.experiment, request.snapshot_id, spec):
        raise _id_in_use(request.run_id, "it is a sweep with different settings, code or seed")
    return record


def _id_in_use(run_id: str, reason: str) -> UserErrorException:
    return UserErrorException(f"run id {run_id!r} is in use: {reason}", hint="choose another custom_run_id, or omit it")


def _try_sampler(spec: SweepSpec) -> None:
    """Propose the first child: a library may reject settings that look valid, and the driver thread could only fail
    the sweep. Only the first, because all points of a large grid would take long."""
    first = len(spec.resumed)
    try:
        sampler = create_sampler(spec.sampling, first + 1, spec.known, spec.sign, first)
        if sampler.ready(first):
            sampler.ask(first)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise HyperDriveConfigException(
            f"{spec.sampling.name} sampling does not support these settings: {error}"
        ) from error


def _check(spec: SweepSpec) -> None:
    """The SDK performs the same checks; other clients may not."""
    try:
        check_space(spec.sampling.space, spec.sampling.name)
    except SpaceError as error:
        raise HyperDriveConfigException(str(error), hint=error.hint) from None
    if spec.goal not in (MAXIMIZE, MINIMIZE):
        raise HyperDriveConfigException(f"goal must be {MAXIMIZE!r} or {MINIMIZE!r}, got {spec.goal!r}")
    if not spec.primary_metric:
        raise HyperDriveConfigException("primary_metric_name is required")
    if spec.sampling.name not in (BAYESIAN, GRID, POPULATION, RANDOM, SOBOL):
        raise HyperDriveConfigException(f"unknown sampling {spec.sampling.name!r}")
    validate_count("seed", spec.sampling.seed, 0, MAX_SEED)
    validate_count(
        "max_total_runs", spec.max_total_runs, maximum=MAX_SOBOL_COUNT if spec.sampling.name == SOBOL else MAX_COUNT
    )
    validate_count("max_concurrent_runs", spec.max_concurrent_runs)
    validate_count("max_duration_minutes", spec.max_duration_minutes)
    validate_count("max_failures_in_a_row", spec.most_failures_in_a_row)
    if spec.sampling.name == POPULATION:
        _check_population(spec.sampling.population, spec.policy)
    if spec.policy is not None:
        _check_policy(spec.policy)


def _check_population(population: Population | None, policy: Policy | None) -> None:
    if population is None:
        raise HyperDriveConfigException("population sampling needs a population of at least 2 members")
    validate_count("population_size", population.size, 2)
    if not 0 < population.replaced <= 0.5 or not 0 <= population.resampled <= 1:
        raise HyperDriveConfigException(
            f"replaced must be greater than 0 and at most 0.5, got {population.replaced!r}; "
            f"resampled must be between 0 and 1, got {population.resampled!r}"
        )
    if policy is not None:
        raise HyperDriveConfigException(
            f"population sampling does not support an early termination policy, got {policy.name}",
            hint="the weakest members are replaced after each generation",
        )


def _check_policy(policy: Policy) -> None:
    """One thread drives all sweeps: a rung that never grows would block every sweep."""
    if policy.name not in policies.NAMES:
        raise HyperDriveConfigException(
            f"unknown early termination policy {policy.name!r}", hint=f"available policies: {', '.join(policies.NAMES)}"
        )
    validate_count("evaluation_interval", policy.evaluation_interval)
    validate_count("delay_evaluation", policy.delay_evaluation, 0)
    validate_count("reduction_factor", policy.reduction_factor, 2)
    validate_count("brackets", policy.brackets)
    if policy.name == "TruncationSelection":
        validate_count("truncation_percentage", policy.truncation_percentage, 1, 99)
    if policy.name != "Bandit":
        return
    slack = {"slack_factor": policy.slack_factor, "slack_amount": policy.slack_amount}
    settings = {name: value for name, value in slack.items() if value is not None}
    if len(settings) != 1:
        raise HyperDriveConfigException("Bandit requires exactly one of slack_factor and slack_amount")
    for name, value in settings.items():
        validate_not_negative(name, value)
