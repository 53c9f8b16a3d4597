"""Taking a sweep in: what can be refused is refused before anything is written or started."""

from __future__ import annotations

from dataclasses import is_dataclass, replace
from typing import Any, get_args, get_type_hints

from runyard import clock
from runyard.errors import HyperDriveConfigException, SnapshotException, UserErrorException
from runyard.lifecycle import events as on
from runyard.lifecycle.state import Life
from runyard.lifecycle.warning import notes
from runyard.orchestrator.conductor import Conductor
from runyard.orchestrator.prepare import refuse_impossible
from runyard.orchestrator.submit import check, check_names
from runyard.spec.json import from_json, to_json
from runyard.spec.run import RunSpec
from runyard.spec.space_checks import MOST, MOST_OF_SOBOL, MOST_SEED, SpaceError, check_space, not_negative, whole
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
from runyard.sweeps.sampling import sampler_of
from runyard.wire.sweeps import RerunChildren, SubmitSweep


def submit_sweep(conductor: Conductor, store: SweepStore, request: SubmitSweep) -> RunRecord:
    rooms = conductor.rooms
    check_names(request.run_id, request.experiment)
    spec = from_json(SweepSpec, request.spec)
    if rooms.runs.has(request.run_id):
        return _sent_again(rooms.runs.load(request.run_id), store.load(request.run_id), request, spec)
    _check(spec)
    child = from_json(RunSpec, spec.child)
    warnings = check(rooms, child)
    refuse_impossible(rooms, child)
    if not rooms.snapshots.has(request.snapshot_id):
        raise SnapshotException(f"snapshot {request.snapshot_id} is not here yet", hint="offer it first")
    _try_sampler(spec)
    record = RunRecord(
        run_id=request.run_id,
        experiment=request.experiment,
        life=Life(managed=False, leads=True),
        created_at=clock.now(),
        root_id=request.run_id,
        type=SWEEP,
        target=child.target,
        snapshot_id=request.snapshot_id,
        warnings=notes((*request.warnings, *warnings)),
        submitted_by=request.submitted_by,
    )
    store.add(request.run_id, spec)
    if store.load(request.run_id) != spec:  # a yard was killed while it took another one in, or takes it in right now
        raise _taken(request.run_id, "a sweep with other settings was begun under that id")
    rooms.folder(record.run_id).logs.mkdir(parents=True, exist_ok=True)
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


def _sent_again(there: RunRecord, known: SweepSpec | None, request: SubmitSweep, spec: SweepSpec) -> RunRecord:
    """Whoever heard no answer sends the same sweep again; anything else would be run as what it is not."""
    if there.type != SWEEP:
        raise _taken(request.run_id, "it is a run, and no sweep")
    if (there.experiment, there.snapshot_id, known) != (request.experiment, request.snapshot_id, spec):
        raise _taken(request.run_id, "it is a sweep with other settings, other code or another seed")
    return there


def _taken(run_id: str, why: str) -> UserErrorException:
    return UserErrorException(f"{run_id!r} is taken: {why}", hint="choose another custom_run_id, or leave it out")


def _try_sampler(spec: SweepSpec) -> None:
    """Its own library may refuse what looks right; in the driver's thread the sweep would only fail, as nobody's fault.
    For its first child: all points of a large grid would take long."""
    first = len(spec.resumed)
    try:
        sampler = sampler_of(spec.sampling, first + 1, spec.known, spec.sign, first)
        if sampler.ready(first):
            sampler.propose(first)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise HyperDriveConfigException(
            f"{spec.sampling.name} sampling cannot be done as asked for: {error}"
        ) from error


def _check(spec: SweepSpec) -> None:
    """The SDK has said the same earlier; others may ask too."""
    _refuse_nulls("SweepSpec", spec)
    try:
        check_space(spec.sampling.space, spec.sampling.name)
    except SpaceError as error:
        raise HyperDriveConfigException(str(error), hint=error.hint) from None
    if spec.goal not in (MAXIMIZE, MINIMIZE):
        raise HyperDriveConfigException(f"the goal is {MAXIMIZE!r} or {MINIMIZE!r}, not {spec.goal!r}")
    if not spec.primary_metric:
        raise HyperDriveConfigException("a sweep needs the name of its primary metric")
    if spec.sampling.name not in (BAYESIAN, GRID, POPULATION, RANDOM, SOBOL):
        raise HyperDriveConfigException(f"no sampling is called {spec.sampling.name!r}")
    whole("seed", spec.sampling.seed, 0, MOST_SEED)
    whole("max_total_runs", spec.max_total_runs, most=MOST_OF_SOBOL if spec.sampling.name == SOBOL else MOST)
    whole("max_concurrent_runs", spec.max_concurrent_runs)
    whole("max_duration_minutes", spec.max_duration_minutes)
    whole("max_failures_in_a_row", spec.most_failures_in_a_row)
    if spec.sampling.name == POPULATION:
        _check_population(spec.sampling.population, spec.policy)
    if spec.policy is not None:
        _check_policy(spec.policy)


def _refuse_nulls(where: str, value: Any) -> None:
    for name, kind in get_type_hints(type(value)).items():
        said = getattr(value, name)
        held = said if isinstance(said, tuple) else (said,)
        if None in held and type(None) not in get_args(kind):
            raise UserErrorException(f"{where}.{name} must not be null")
        for one in held:
            if is_dataclass(one):
                _refuse_nulls(f"{where}.{name}", one)


def _check_population(population: Population | None, policy: Policy | None) -> None:
    if population is None:
        raise HyperDriveConfigException("a population has at least 2 members")
    whole("population_size", population.size, 2)
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
    whole("evaluation_interval", policy.evaluation_interval)
    whole("delay_evaluation", policy.delay_evaluation, 0)
    whole("reduction_factor", policy.reduction_factor, 2)
    whole("brackets", policy.brackets)
    if policy.name == "TruncationSelection":
        whole("truncation_percentage", policy.truncation_percentage, 1, 99)
    if policy.name != "Bandit":
        return
    slack = {"slack_factor": policy.slack_factor, "slack_amount": policy.slack_amount}
    given = {name: value for name, value in slack.items() if value is not None}
    if len(given) != 1:
        raise HyperDriveConfigException("Bandit takes exactly one of slack_factor and slack_amount")
    for name, value in given.items():
        not_negative(name, value)
